"""More platforms with accounts, of other words, nesting and routes than those of `shapes`."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from tests.accounts.base import TEXT, Rest, Shape, body, crud, fields, form, takes
from tests.sandbox.doubles import Got, http_answer, json_answer

JSON_API = "application/vnd.api+json"


def resource(kind: str, **attributes: Any) -> dict[str, Any]:
    """The schema of a JSON:API document that is sent."""
    inner = {"type": "object", "properties": attributes, "required": list(attributes)}
    data = {"type": {"type": "string", "enum": [kind]}, "attributes": inner}
    top = {"type": "object", "properties": data, "required": ["type", "attributes"]}
    return {"type": "object", "properties": {"data": top}, "required": ["data"]}


class Resources(Rest):
    """JSON:API: a type of its own, everything below `data.attributes`, refusals with pointers."""

    join, enter, things = "/enrolments", "/credentials", "/appointments"
    description = {
        "openapi": "3.0.3",
        "paths": {
            "/enrolments": {
                "post": takes(
                    resource("enrolments", **{"login-name": TEXT, "contact-mail": TEXT, "keyphrase": TEXT}),
                    JSON_API,
                )
            },
            "/credentials": {
                "post": takes(resource("credentials", **{"login-name": TEXT, "keyphrase": TEXT}), JSON_API)
            },
            "/appointments": {
                "get": {"summary": "All appointments"},
                "post": takes(resource("appointments", subject=TEXT), JSON_API),
            },
            "/appointments/{appointmentId}": {"get": {"summary": "An appointment"}},
        },
    }

    def __call__(self, got: Got) -> bytes:
        if got.method == "POST" and got.headers.get("content-type") != JSON_API:
            return self.refuse(415, {"errors": [{"status": "415", "title": "Unsupported Media Type"}]})
        return super().__call__(got)

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        made = lambda got: self._inside(got, lambda user: self.add(user, **self._sent(got)))  # noqa: E731
        return [("POST", self.things, made), *super().routes()]

    @staticmethod
    def _sent(got: Got) -> dict[str, Any]:
        data = body(got).get("data", {})
        return dict(data.get("attributes", {})) if isinstance(data, dict) else {}

    def sign_up(self, got: Got) -> bytes:
        sent = self._sent(got)
        if len(str(sent.get("keyphrase"))) < 24:
            pointer = {"pointer": "/data/attributes/keyphrase"}
            error = {
                "source": pointer,
                "title": "Invalid",
                "detail": "is too short (minimum is 24 characters)",
            }
            return self.refuse(422, {"errors": [error]})
        self.people[sent["login-name"]] = sent
        return json_answer(201, {"data": {"type": "enrolments", "id": "1", "attributes": {}}})

    def log_in(self, got: Got) -> bytes:
        sent = self._sent(got)
        if self.people.get(str(sent.get("login-name")), {}).get("keyphrase") != sent.get("keyphrase"):
            return self.refuse(401, {"errors": [{"status": "401"}]})
        attributes = {"bearer": self.token(sent["login-name"]), "expires-in": 900}
        return json_answer(201, {"data": {"type": "credentials", "id": "9", "attributes": attributes}})

    def enveloped(self, found: Any) -> Any:
        if isinstance(found, list):
            return {"data": [self.enveloped(one)["data"] for one in found]}
        return {"data": {"type": "appointments", "id": str(found["id"]), "attributes": found}}


class Wrapped(Rest):
    """Rails with devise: bodies below the name of what they are of, the token in a header of the answer."""

    join, enter, things = "/users", "/users/sign_in", "/messages"
    description = {
        "openapi": "3.0.1",
        "components": {"securitySchemes": {"jwt": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            "/users": {"post": takes(fields(user=fields("email", "password", "password_confirmation")))},
            "/users/sign_in": {"post": takes(fields(user=fields("email", "password")))},
            **crud(
                "/messages",
                "message",
                fields(message=fields("subject", required=("subject",)), required=("message",)),
                "Show message",
                security=[{"jwt": []}],
            ),
        },
    }

    def sign_up(self, got: Got) -> bytes:
        sent = body(got).get("user") or {}
        wrong: dict[str, list[str]] = {}
        if not re.fullmatch(r"\w{1,9}", str(sent.get("username", ""))):
            wrong["username"] = (
                ["can't be blank"] if "username" not in sent else ["is too long (maximum is 9 characters)"]
            )
        if len(str(sent.get("password"))) > 14:
            wrong["password"] = ["is too long (maximum is 14 characters)"]
        if wrong or sent.get("password") != sent.get("password_confirmation"):
            return self.refuse(
                422, {"errors": wrong or {"password_confirmation": ["doesn't match Password"]}}
            )
        self.people[sent["email"]] = sent
        return json_answer(201, {"id": len(self.people)})

    def log_in(self, got: Got) -> bytes:
        sent = body(got).get("user") or {}
        if self.people.get(str(sent.get("email")), {}).get("password") != sent.get("password"):
            return self.refuse(401, {"error": "Invalid Email or password."})
        return json_answer(
            200, {"message": "Logged in."}, f"authorization: Bearer {self.token(sent['email'])}"
        )


class Guide(Rest):
    """No description, but a guide: forms by curl, and a header that shows the session."""

    described, join, enter, things = "/llms.txt", "/enrol", "/sessions", "/reminders"
    text = """# Reminders

Enrol first. There is no API description; this page is all.

1. `POST /enrol` takes a form: `curl -d 'account=alice' -d 'passcode=at least 8' {base}/enrol`
2. `POST /sessions` with the same fields answers `{"sessionKey": "..."}`
3. Send the key with each request: `curl -H 'X-Session: KEY' {base}/reminders`
4. `POST /reminders`: `curl -H 'X-Session: KEY' -d 'words=water the plants' {base}/reminders` gives its id
5. `GET /reminders/{id}` is one of your reminders
6. `GET /reminders` has all of yours
"""

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        page = http_answer(200, self.text.encode(), "content-type: text/plain")
        made = lambda got: self._inside(got, lambda user: self.add(user, **form(got)))  # noqa: E731
        return [("GET", "/llms.txt", lambda got: page), ("POST", self.things, made), *super().routes()]

    def who(self, got: Got) -> str:
        return self.tokens.get(got.headers.get("x-session", ""), "")

    def sign_up(self, got: Got) -> bytes:
        sent = form(got)
        if not sent.get("account") or not sent.get("passcode"):
            return self.refuse(400, {"error": "account and passcode are required"})
        self.people[sent["account"]] = sent
        return json_answer(201, {})

    def log_in(self, got: Got) -> bytes:
        sent = form(got)
        if self.people.get(sent.get("account", ""), {}).get("passcode") != sent.get("passcode"):
            return self.refuse(401, {"error": "no"})
        return json_answer(200, {"sessionKey": self.token(sent["account"])})


class CrossSite(Rest):
    """Laravel: cookies, and a token against forged requests that each request has to repeat."""

    join, enter, things = "/register", "/login", "/addresses"
    description = {
        "openapi": "3.0.0",
        "paths": {
            "/register": {
                "post": takes(
                    fields(
                        "name",
                        "email",
                        "password",
                        "password_confirmation",
                        required=("name", "email", "password", "password_confirmation"),
                    )
                )
            },
            "/login": {"post": takes(fields("email", "password", required=("email", "password")))},
            **crud("/addresses", "address", fields("street", required=("street",)), "Fetch an address"),
        },
        "components": {
            "securitySchemes": {"session": {"type": "apiKey", "in": "cookie", "name": "app_session"}}
        },
    }

    def __call__(self, got: Got) -> bytes:
        cookies = dict(re.findall(r"([\w-]+)=([^;]+)", got.headers.get("cookie", "")))
        given = cookies.get("XSRF-TOKEN", "")
        if got.method == "POST" and (not given or got.headers.get("x-xsrf-token") != unquote(given)):
            return http_answer(419, b'{"message": "CSRF token mismatch."}', "content-type: application/json")
        answer = super().__call__(got)
        token = f"{secrets.token_hex(10)}%3D"
        head, _, rest = answer.partition(b"\r\n\r\n")
        return head + f"\r\nset-cookie: XSRF-TOKEN={token}; path=/\r\n\r\n".encode() + rest

    def who(self, got: Got) -> str:
        cookies = dict(re.findall(r"([\w-]+)=([^;]+)", got.headers.get("cookie", "")))
        return self.tokens.get(cookies.get("app_session", ""), "")

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if sent.get("password") != sent.get("password_confirmation"):
            return self.refuse(422, {"errors": {"password": ["The password confirmation does not match."]}})
        self.people[sent["email"]] = sent
        return self._begun(sent["email"])

    def _begun(self, user: str) -> bytes:
        cookie = f"set-cookie: app_session={self.token(user)}; path=/; httponly; samesite=lax"
        return http_answer(204, b"", cookie)

    def log_in(self, got: Got) -> bytes:
        sent = body(got)
        if self.people.get(sent.get("email", ""), {}).get("password") != sent.get("password"):
            return self.refuse(422, {"errors": {"email": ["These credentials do not match our records."]}})
        return self._begun(sent["email"])


class KeyInQuery(Rest):
    """A key that an application gets, in the query; things that are named by a reference."""

    join, things = "/v1/apps", "/v1/bookings"
    description = {
        "openapi": "3.1.0",
        "servers": [{"url": "/v1"}],
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "api_key"}}},
        "paths": {
            "/apps": {
                "post": {
                    "operationId": "registerApp",
                    "security": [],
                    **takes(fields("title", "owner_email", required=("title", "owner_email"))),
                }
            },
            "/bookings": {
                "get": {"operationId": "listBookings"},
                "post": takes({"anyOf": [fields("remark", required=("remark",))]}),
            },
            "/bookings/{reference}": {"get": {"operationId": "getBooking"}},
        },
    }

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        read = lambda got, at: self._inside(got, lambda user: self.one(user, at))  # noqa: E731
        return [*super().routes(), ("GET", r"/v1/bookings/BK-(\d+)", read)]

    def who(self, got: Got) -> str:
        found = re.search(r"[?&]api_key=([\w-]+)", got.path)
        return self.tokens.get(found[1], "") if found else ""

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if not sent.get("title") or "@" not in str(sent.get("owner_email")):
            return self.refuse(400, {"code": "invalid", "fields": ["title", "owner_email"]})
        self.people[sent["owner_email"]] = sent
        return json_answer(201, {"result": {"credentials": {"secret": self.token(sent["owner_email"])}}})

    def enveloped(self, found: Any) -> Any:
        if isinstance(found, list):
            return {"result": [self.enveloped(one)["result"] for one in found]}
        named = {"reference": f"BK-{found['id']}"}
        return {"result": named | {name: value for name, value in found.items() if name != "id"}}


SHAPES: Mapping[str, type[Shape]] = {
    "resources": Resources,
    "wrapped": Wrapped,
    "guide": Guide,
    "cross-site": CrossSite,
    "key-in-query": KeyInQuery,
}
