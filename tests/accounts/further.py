"""Platforms with accounts that were written after all others, to see what was not thought of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.accounts.base import TEXT, Rest, Shape, body, crud, fields, form, takes
from tests.sandbox.doubles import Got, http_answer, json_answer

FORM = "application/x-www-form-urlencoded"


class PinForms(Rest):
    """Forms alone, a telephone number in place of a name, the token in a header of its own."""

    join, enter, things = "/api/customers", "/api/customers/authenticate", "/api/transfers"
    description = {
        "openapi": "3.0.0",
        "paths": {
            "/api/customers": {
                "post": {
                    "tags": ["customers"],
                    **takes(fields("mobile", "pin", "surname", required=("mobile", "pin", "surname")), FORM),
                }
            },
            "/api/customers/authenticate": {
                "post": {
                    "tags": ["customers"],
                    **takes(fields("mobile", "pin", required=("mobile", "pin")), FORM),
                }
            },
            "/api/transfers": {
                "get": {},
                "post": takes(fields("purpose", "amount", required=("purpose",)), FORM),
            },
            "/api/transfers/{transferId}": {"get": {}},
        },
    }

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        made = lambda got: self._inside(got, lambda user: self.add(user, **form(got)))  # noqa: E731
        return [("POST", self.things, made), *super().routes()]

    def sign_up(self, got: Got) -> bytes:
        sent = form(got)
        if not (sent.get("pin", "").isdigit() and len(sent["pin"]) == 6):
            return self.refuse(
                400, {"status": 400, "error": "Bad Request", "message": "pin must be exactly 6 digits"}
            )
        if sent.get("mobile") in self.people:
            return self.refuse(409, {"message": "mobile is already registered"})
        self.people[sent["mobile"]] = sent
        return json_answer(201, {})

    def log_in(self, got: Got) -> bytes:
        sent = form(got)
        if self.people.get(str(sent.get("mobile")), {}).get("pin") != sent.get("pin"):
            return self.refuse(401, {"message": "no"})
        return http_answer(
            200, b"{}", "content-type: application/json", f"x-auth-token: {self.token(sent['mobile'])}"
        )

    def who(self, got: Got) -> str:
        return self.tokens.get(got.headers.get("x-auth-token", ""), "")


class DjangoTokens(Rest):
    """Django REST: paths that end in a slash, a word of its own before the token."""

    join, enter, things = "/api/auth/users/", "/api/auth/token/login/", "/api/notes/"
    description = {
        "openapi": "3.0.3",
        "components": {
            "securitySchemes": {
                "tokenAuth": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": 'Token-based authentication with required prefix "Token"',
                }
            },
            "schemas": {
                "UserCreate": fields("email", "username", "password", required=("username", "password")),
                "Note": fields("text", id={"type": "integer", "readOnly": True}, required=("id", "text")),
            },
        },
        "paths": {
            "/api/auth/users/": {
                "post": {
                    "operationId": "auth_users_create",
                    **takes({"$ref": "#/components/schemas/UserCreate"}),
                    "security": [{"tokenAuth": []}, {}],
                }
            },
            "/api/auth/token/login/": {
                "post": {"operationId": "auth_token_login_create", **takes(fields("username", "password"))}
            },
            "/api/notes/": {
                "get": {"operationId": "notes_list"},
                "post": {
                    "operationId": "notes_create",
                    **takes({"$ref": "#/components/schemas/Note"}),
                    "security": [{"tokenAuth": []}],
                },
            },
            "/api/notes/{id}/": {
                "get": {"operationId": "notes_retrieve", "description": "Returns a note of the caller."}
            },
        },
    }

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        known = super().routes()
        one = r"/api/notes/(\d+)/"
        return [(how, one if path.endswith("(\\d+)") else path, answer) for how, path, answer in known]

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if len(str(sent.get("username", ""))) < 3:
            return self.refuse(400, {"username": ["This field is required."]})
        self.people[sent["username"]] = sent
        return json_answer(201, {"username": sent["username"], "id": 3})

    def log_in(self, got: Got) -> bytes:
        sent = body(got)
        if self.people.get(str(sent.get("username")), {}).get("password") != sent.get("password"):
            return self.refuse(400, {"non_field_errors": ["Unable to log in with provided credentials."]})
        return json_answer(200, {"auth_token": self.token(sent["username"])})

    def who(self, got: Got) -> str:
        k, _, t = got.headers.get("authorization", "").partition(" ")
        return self.tokens.get(t, "") if k == "Token" else ""


class Spring(Rest):
    """Spring: nothing is required, names of bodies in camel case, a passphrase that is short and repeated."""

    join, enter, things = "/users/register", "/users/login", "/orders"
    described = "/v3/api-docs"
    description = {
        "openapi": "3.0.1",
        "servers": [{"url": "http://localhost:1"}],
        "paths": {
            "/users/register": {
                "post": {"operationId": "register", **takes({"$ref": "#/components/schemas/RegisterDto"})}
            },
            "/users/login": {
                "post": {"operationId": "login", **takes({"$ref": "#/components/schemas/LoginDto"})}
            },
            **crud("/orders", "order", {"$ref": "#/components/schemas/OrderDto"}, "getOrder"),
        },
        "components": {
            "schemas": {
                "RegisterDto": {
                    "type": "object",
                    "properties": {
                        "firstName": TEXT,
                        "emailAddress": TEXT,
                        "password": {"type": "string", "minLength": 8, "maxLength": 12},
                        "confirmPassword": TEXT,
                        "dateOfBirth": {"type": "string", "format": "date"},
                        "roles": {"type": "array", "items": TEXT},
                    },
                },
                "LoginDto": {"type": "object", "properties": {"emailAddress": TEXT, "password": TEXT}},
                "OrderDto": {
                    "type": "object",
                    "properties": {
                        "comment": TEXT,
                        "items": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {"sku": TEXT, "count": {"type": "integer", "format": "int32"}},
                            },
                        },
                    },
                },
            }
        },
    }

    def sign_up(self, got: Got) -> bytes:
        sent = body(got)
        if not 8 <= len(sent.get("password", "")) <= 12:
            return self.refuse(
                400,
                {
                    "timestamp": "x",
                    "status": 400,
                    "errors": [
                        {
                            "field": "password",
                            "defaultMessage": "size must be between 8 and 12",
                            "code": "Size",
                        }
                    ],
                },
            )
        if sent.get("password") != sent.get("confirmPassword"):
            return self.refuse(400, {"message": "Passwords don't match"})
        self.people[sent["emailAddress"]] = sent
        return json_answer(200, {"id": 1})

    def log_in(self, got: Got) -> bytes:
        sent = body(got)
        if self.people.get(str(sent.get("emailAddress")), {}).get("password") != sent.get("password"):
            return self.refuse(401, {"message": "Bad credentials"})
        return json_answer(200, {"jwtToken": self.token(sent["emailAddress"]), "type": "Bearer"})


SHAPES: Mapping[str, type[Shape]] = {"pin": PinForms, "django-tokens": DjangoTokens, "spring": Spring}
