"""Small platforms with accounts, after the habits of frameworks: to sign up, to sign in, to show who asks."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping
from typing import Any

from tests.accounts.base import TEXT, Rest, Shape, body, crud, fields, form, missing, multipart, takes
from tests.accounts.site import HiddenToken
from tests.sandbox.doubles import Got, http_answer, json_answer


class TokenForm(Rest):
    """FastAPI: no field is required, a token endpoint that takes a form and is named by its scheme alone."""

    join, enter, things = "/users/", "/oauth2/issue", "/orders"

    description = {
        "openapi": "3.1.0",
        "paths": {
            "/users/": {
                "post": {
                    "summary": "Create User",
                    **takes(
                        fields(
                            "email", "password", "full_name", is_active={"type": "boolean", "default": True}
                        )
                    ),
                }
            },
            "/oauth2/issue": {
                "post": {
                    "summary": "Issue",
                    **takes(
                        fields(
                            "username",
                            "password",
                            grant_type={
                                "anyOf": [{"type": "string", "pattern": "^password$"}, {"type": "null"}]
                            },
                            scope={"type": "string", "default": ""},
                        ),
                        "application/x-www-form-urlencoded",
                    ),
                }
            },
            **crud(
                "/orders",
                "order",
                fields("note", required=("note",)),
                "Read Order",
                security=[{"Bearer": []}],
            ),
        },
        "components": {
            "securitySchemes": {
                "Bearer": {
                    "type": "oauth2",
                    "flows": {"password": {"scopes": {}, "tokenUrl": "oauth2/issue"}},
                }
            }
        },
    }

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if lacks := tuple(name for name in ("email", "password", "full_name") if name not in sent):
            return self.refuse(422, missing("body", lacks))
        self.people[sent["email"]] = sent
        return json_answer(200, {"id": len(self.people), "email": sent["email"]})

    def log_in(self, got: Got) -> bytes:
        sent = form(got)
        if lacks := tuple(name for name in ("username", "password") if name not in sent):
            return self.refuse(422, missing("body", lacks))
        if self.people.get(sent["username"], {}).get("password") != sent["password"]:
            return self.refuse(400, {"detail": "Incorrect email or password"})
        return json_answer(200, {"access_token": self.token(sent["username"]), "token_type": "bearer"})


class KeyHeader(Rest):
    """Swagger 2.0 in YAML: no passphrase at all, signing up answers with the key of a header."""

    described, join, things = "/swagger.yaml", "/v2/developers", "/v2/parcels"

    description = """
swagger: "2.0"
info: {title: parcels, version: "1"}
basePath: /v2
consumes: [application/json]
securityDefinitions:
  key: {type: apiKey, in: header, name: X-Parcel-Key}
security:
  - key: []
paths:
  /developers:
    post:
      summary: Register a developer
      security: []
      parameters:
        - {in: body, name: body, schema: {$ref: '#/definitions/Developer'}}
      responses: {201: {description: made}}
  /parcels:
    get: {summary: Your parcels, responses: {200: {description: all}}}
    post:
      summary: Send a parcel
      parameters:
        - {in: body, name: body, schema: {$ref: '#/definitions/Parcel'}}
      responses: {201: {description: made}}
  /parcels/{number}:
    get:
      summary: One of your parcels
      parameters: [{in: path, name: number, required: true, type: integer}]
      responses: {200: {description: one}, 404: {description: none}}
definitions:
  Developer:
    type: object
    required: [contact, company]
    properties:
      contact: {type: string, format: email}
      company: {type: string}
  Parcel:
    type: object
    required: [label]
    properties: {label: {type: string}}
"""

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if "@" not in str(sent.get("contact")) or not sent.get("company"):
            return self.refuse(400, {"message": "contact and company are needed"})
        self.people[sent["contact"]] = sent
        return json_answer(
            201, {"developer": {"contact": sent["contact"], "api_key": self.token(sent["contact"])}}
        )

    def who(self, got: Got) -> str:
        return self.tokens.get(got.headers.get("x-parcel-key", ""), "")

    def enveloped(self, found: Any) -> Any:
        if isinstance(found, list):
            return {"items": [self.enveloped(one) for one in found]}
        return {"number" if name == "id" else name: value for name, value in found.items()}


class Picky(Rest):
    """pydantic: what a sign-up needs is said by its refusals alone, field by field, with bounds."""

    join, enter, things = "/api/signup", "/api/login", "/api/bookings"

    said = "One of your bookings"
    description = {
        "openapi": "3.0.3",
        "paths": {
            "/api/signup": {
                "post": {
                    "summary": "Sign up",
                    **takes(
                        fields("username", "email", "password", required=("username", "email", "password"))
                    ),
                }
            },
            "/api/login": {
                "post": {
                    "summary": "Log in",
                    **takes(fields("username", "password", required=("username", "password"))),
                }
            },
            **crud("/api/bookings", "booking", fields("title", required=("title",)), said),
        },
    }

    def _wrong(self, sent: Mapping[str, Any]) -> list[dict[str, Any]]:
        wrong = []
        if not re.fullmatch(r"[a-z]{4,12}", str(sent.get("username"))):
            wrong.append(
                {
                    "type": "string_pattern_mismatch",
                    "loc": ["body", "username"],
                    "msg": "String should match pattern '^[a-z]{4,12}$'",
                    "input": sent.get("username"),
                    "ctx": {"pattern": "^[a-z]{4,12}$"},
                }
            )
        if len(str(sent.get("password"))) > 16:
            wrong.append(
                {
                    "type": "string_too_long",
                    "loc": ["body", "password"],
                    "msg": "String should have at most 16 characters",
                    "input": sent.get("password"),
                    "ctx": {"max_length": 16},
                }
            )
        if "birth_year" not in sent:
            wrong.append(
                {"type": "missing", "loc": ["body", "birth_year"], "msg": "Field required", "input": sent}
            )
        elif type(sent["birth_year"]) is not int:
            wrong.append(
                {
                    "type": "int_type",
                    "loc": ["body", "birth_year"],
                    "msg": "Input should be a valid integer",
                    "input": sent["birth_year"],
                }
            )
        elif sent["birth_year"] < 1900:
            wrong.append(
                {
                    "type": "greater_than_equal",
                    "loc": ["body", "birth_year"],
                    "msg": "Input should be greater than or equal to 1900",
                    "input": sent["birth_year"],
                    "ctx": {"ge": 1900},
                }
            )
        return wrong

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if wrong := self._wrong(sent):
            return self.refuse(422, {"detail": wrong})
        self.people[sent["username"]] = sent
        return json_answer(201, {"username": sent["username"]})

    def log_in(self, got: Got) -> bytes:
        sent = body(got)
        if self.people.get(sent.get("username", ""), {}).get("password") != sent.get("password"):
            return self.refuse(401, {"detail": "Bad credentials"})
        return json_answer(200, {"token": self.token(sent["username"])})


class Sentences(Picky):
    """The same by one sentence at a time."""

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        name, mail, phrase = (str(sent.get(one, "")) for one in ("username", "email", "password"))
        for fits, said in (
            (name.isalpha(), "Username may only contain letters."),
            (len(name) <= 10, "Username must be between 3 and 10 characters long."),
            (mail.endswith("@mail.example"), "email: only addresses at @mail.example are accepted"),
            (
                len(phrase) <= 18 and re.search(r"[#?]", phrase),
                "Password must have 12 to 18 characters and contain one of #?",
            ),
            (sent.get("terms") is True, "terms must be accepted"),
        ):
            if not fits:
                return self.refuse(400, {"error": said})
        self.people[sent["username"]] = sent
        return json_answer(201, {"ok": True})


class Basic(Rest):
    """Flask: a sign-up in JSON, then HTTP basic with each request."""

    join, things = "/register", "/letters"

    description = {
        "openapi": "3.0.0",
        "security": [{"basic": []}],
        "paths": {
            "/register": {
                "post": {
                    "summary": "Register",
                    "security": [],
                    **takes(fields("username", "password", required=("username", "password"))),
                }
            },
            **crud("/letters", "letter", fields("text", required=("text",)), "Reads your letter"),
        },
        "components": {"securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
    }

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if not sent.get("username") or not sent.get("password"):
            return self.refuse(400, {"error": "username and password are required"})
        self.people[sent["username"]] = sent
        return json_answer(201, {"username": sent["username"]})

    def who(self, got: Got) -> str:
        kind, _, sent = got.headers.get("authorization", "").partition(" ")
        try:
            user, _, phrase = base64.b64decode(sent).decode().partition(":")
        except ValueError:
            return ""
        return user if kind == "Basic" and self.people.get(user, {}).get("password") == phrase else ""


class Nested(Rest):
    """Express: everything in an envelope, the log-in by e-mail, a token beside one that refreshes it."""

    join, enter, things = "/api/v1/auth/register", "/api/v1/auth/login", "/api/v1/invoices"

    description = {
        "openapi": "3.0.0",
        "servers": [{"url": "/api/v1"}],
        "paths": {
            "/auth/register": {
                "post": {
                    "summary": "Register",
                    **takes(
                        fields(
                            "name",
                            "email",
                            "password",
                            "password_confirmation",
                            required=("name", "email", "password", "password_confirmation"),
                        )
                    ),
                }
            },
            "/auth/login": {
                "post": {
                    "summary": "Login",
                    **takes(fields("email", "password", required=("email", "password"))),
                }
            },
            "/auth/refresh": {
                "post": {"summary": "Refresh", **takes(fields("refresh_token", required=("refresh_token",)))}
            },
            **crud("/invoices", "invoice", fields("memo", required=("memo",)), "Get an invoice by id"),
        },
    }

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if sent.get("password") != sent.get("password_confirmation") or "@" not in sent.get("email", ""):
            return self.refuse(400, {"status": "error", "message": "Passwords do not match"})
        self.people[sent["email"]] = sent
        return json_answer(201, {"status": "success", "data": {"user": {"email": sent["email"]}}})

    def log_in(self, got: Got) -> bytes:
        sent = body(got)
        if self.people.get(sent.get("email", ""), {}).get("password") != sent.get("password"):
            return self.refuse(401, {"status": "error", "message": "Invalid credentials"})
        tokens = {"refresh_token": secrets.token_urlsafe(24), "access_token": self.token(sent["email"])}
        return json_answer(200, {"status": "success", "data": {"session": {"tokens": tokens}}})

    def enveloped(self, found: Any) -> Any:
        return {"status": "success", "data": {"invoices" if isinstance(found, list) else "invoice": found}}


class Parts(Rest):
    """A sign-up that takes parts of a form, with a picture that may be left out."""

    join, enter, things = "/members", "/sessions", "/diary"

    description = {
        "openapi": "3.0.0",
        "paths": {
            "/members": {
                "post": {
                    "summary": "Become a member",
                    **takes(
                        fields(
                            "nickname",
                            "passphrase",
                            picture={"type": "string", "format": "binary"},
                            required=("nickname", "passphrase"),
                        ),
                        "multipart/form-data",
                    ),
                }
            },
            "/sessions": {
                "post": {
                    "summary": "Begin a session",
                    **takes(
                        fields("nickname", "passphrase", required=("nickname", "passphrase")),
                        "multipart/form-data",
                    ),
                }
            },
            **crud("/diary", "entry", fields("line", required=("line",)), "An entry of your diary"),
        },
    }

    def sign_up(self, got: Got) -> bytes:
        sent = multipart(got)
        if not sent.get("nickname") or not sent.get("passphrase"):
            return self.refuse(415, {"error": "multipart/form-data expected"})
        self.people[sent["nickname"]] = sent
        return json_answer(201, {})

    def log_in(self, got: Got) -> bytes:
        sent = multipart(got)
        if self.people.get(sent.get("nickname", ""), {}).get("passphrase") != sent.get("passphrase"):
            return self.refuse(403, {"error": "no"})
        return http_answer(204, b"", f"set-cookie: who={self.token(sent['nickname'])}; Path=/; HttpOnly")

    def who(self, got: Got) -> str:
        found = re.search(r"who=([\w-]+)", got.headers.get("cookie", ""))
        return self.tokens.get(found[1], "") if found else ""


class Clients(Rest):
    """OAuth 2 for programs: two clients that the operator knows, and no way to sign up."""

    enter, things = "/connect/token", "/jobs"

    description = {
        "openapi": "3.0.0",
        "security": [{"oauth": []}],
        "paths": crud("/jobs", "job", fields("name", required=("name",)), "One of your jobs"),
        "components": {
            "securitySchemes": {
                "oauth": {
                    "type": "oauth2",
                    "flows": {"clientCredentials": {"tokenUrl": "/connect/token", "scopes": {}}},
                }
            }
        },
    }
    profile: Mapping[str, Any] = {
        "accounts": {
            "one": {"user": "client-one", "secret_env": "QA_ONE"},
            "other": {"user": "client-two", "secret_env": "QA_TWO"},
        }
    }
    accounts: Mapping[str, dict[str, str]] = {
        "one": {"user": "client-one", "secret": "a-secret-of-one-1"},
        "other": {"user": "client-two", "secret": "a-secret-of-two-2"},
    }

    def log_in(self, got: Got) -> bytes:
        sent = form(got)
        known = {one["user"]: one["secret"] for one in self.accounts.values()}
        client = sent.get("client_id", "")
        if sent.get("grant_type") != "client_credentials" or known.get(client) != sent.get("client_secret"):
            return self.refuse(401, {"error": "invalid_client"})
        return json_answer(
            200, {"access_token": self.token(client), "token_type": "Bearer", "expires_in": 3600}
        )


class References(Picky):
    """A generator's description: all of it behind references, with nested parts, examples, enums, formats."""

    said = "One of your bookings"
    description = {
        "openapi": "3.1.0",
        "paths": {
            "/api/signup": {"$ref": "#/components/pathItems/Signup"},
            "/api/login": {"post": {"requestBody": {"$ref": "#/components/requestBodies/Login"}}},
            **crud("/api/bookings", "booking", {"$ref": "#/components/schemas/Booking"}, said),
        },
        "components": {
            "pathItems": {
                "Signup": {
                    "post": {
                        "operationId": "signup",
                        "requestBody": {"$ref": "#/components/requestBodies/Signup"},
                    }
                }
            },
            "requestBodies": {
                "Signup": {
                    "content": {
                        "application/json; charset=utf-8": {"schema": {"$ref": "#/components/schemas/Signup"}}
                    }
                },
                "Login": {
                    "content": {
                        "application/json; charset=utf-8": {
                            "schema": {"allOf": [{"$ref": "#/components/schemas/Keys"}]}
                        }
                    }
                },
            },
            "schemas": {
                "Keys": {
                    "type": "object",
                    "required": ["username", "password"],
                    "properties": {
                        "username": {"$ref": "#/components/schemas/Name"},
                        "password": {"type": "string", "format": "password", "minLength": 8},
                    },
                },
                "Name": {"type": "string", "pattern": "^[a-z]{5,9}$"},
                "Signup": {
                    "allOf": [{"$ref": "#/components/schemas/Keys"}, {"$ref": "#/components/schemas/Person"}]
                },
                "Person": {
                    "type": "object",
                    "required": ["born", "plan", "address", "languages", "phone", "consent"],
                    "properties": {
                        "born": {"type": "string", "format": "date"},
                        "plan": {"type": "string", "enum": ["free", "paid"]},
                        "address": {"$ref": "#/components/schemas/Address"},
                        "languages": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string", "enum": ["en", "fr"]},
                        },
                        "phone": {"type": "string", "pattern": r"^\+\d{7,12}$", "examples": ["+4930123456"]},
                        "consent": {"const": True},
                    },
                },
                "Address": {
                    "type": "object",
                    "required": ["street", "zip"],
                    "properties": {"street": TEXT, "zip": {"type": "string", "example": "10115"}},
                },
                "Booking": fields("title", required=("title",)),
            },
        },
    }

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        address = sent.get("address")
        fits = (
            re.fullmatch(r"[a-z]{5,9}", str(sent.get("username"))),
            re.fullmatch(r"\d{4}-\d\d-\d\d", str(sent.get("born"))),
            sent.get("plan") in ("free", "paid"),
            isinstance(address, dict)
            and address.get("street")
            and re.fullmatch(r"\d{5}", str(address.get("zip"))),
            isinstance(sent.get("languages"), list)
            and set(sent["languages"]) <= {"en", "fr"}
            and sent["languages"],
            re.fullmatch(r"\+\d{7,12}", str(sent.get("phone"))),
            sent.get("consent") is True,
        )
        if not all(fits):
            return self.refuse(400, {"title": "Bad Request"})
        self.people[sent["username"]] = sent
        return json_answer(201, {"username": sent["username"]})


class ByMail(Picky):
    """A sign-up that has to be confirmed by e-mail: nothing that we can do."""

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        self.people[str(sent.get("username"))] = sent
        return json_answer(201, {"message": "Check your inbox to confirm your address"})

    def log_in(self, got: Got) -> bytes:
        return self.refuse(403, {"detail": "Your e-mail address is not verified yet"})


SHAPES: Mapping[str, type[Shape]] = {
    "token-form": TokenForm,
    "key-header": KeyHeader,
    "hidden-token": HiddenToken,
    "picky": Picky,
    "sentences": Sentences,
    "basic": Basic,
    "nested": Nested,
    "parts": Parts,
    "clients": Clients,
    "references": References,
    "by-mail": ByMail,
}
