"""Small platforms with accounts, each after one framework's habits: functions from a request to an answer.

Each has one defect when `leaks` is set: an account reads what another one made, by its id. It shows to two
accounts only; without it the platform is healthy.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.sandbox.doubles import Got, http_answer, json_answer

Person = dict[str, Any]
TEXT = {"type": "string"}


class Shape:
    """What all of them share: people by name, what each made, tokens."""

    profile: Mapping[str, Any] = {}
    """What an operator writes of it, besides its place."""
    accounts: Mapping[str, dict[str, str]] = {}
    """The accounts that an operator made."""

    def __init__(self, leaks: bool) -> None:
        self.leaks = leaks
        self.people: dict[str, Person] = {}
        self.tokens: dict[str, str] = {}
        self.made: list[dict[str, Any]] = []
        self.refused: list[str] = []
        """What was refused of a sign-up or log-in."""

    def __call__(self, got: Got) -> bytes:
        split = urlsplit(got.path)
        for method, path, answer in self.routes():
            if method == got.method and (found := re.fullmatch(path, split.path)):
                return answer(got, *found.groups())
        return json_answer(404, {"detail": "Not Found"})

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        raise NotImplementedError

    def token(self, user: str) -> str:
        made = secrets.token_urlsafe(24)
        self.tokens[made] = user
        return made

    def refuse(self, status: int, body: object) -> bytes:
        self.refused.append(json.dumps(body))
        return json_answer(status, body)

    def bearer(self, got: Got) -> str:
        return self.tokens.get(got.headers.get("authorization", "").removeprefix("Bearer "), "")

    def add(self, user: str, **given: Any) -> dict[str, Any]:
        self.made.append({"id": len(self.made) + 41, **given, "owner": user})
        return self.made[-1]

    def mine(self, user: str) -> list[dict[str, Any]]:
        return [one for one in self.made if one["owner"] == user]

    def one(self, user: str, ident: str) -> dict[str, Any] | None:
        """The thing of this id, as this account may read it."""
        found = next((one for one in self.made if str(one["id"]) == ident), None)
        return found if found and (self.leaks or found["owner"] == user) else None


class Rest(Shape):
    """A JSON API with a description, and one collection of things behind a session."""

    described = "/openapi.json"
    description: Mapping[str, Any] | str = {}
    """In JSON, or as it is written."""
    join, enter, things = "", "", ""

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        return [
            ("GET", self.described, lambda got: _shown(self.description)),
            ("POST", self.join or "-", self.sign_up),
            ("POST", self.enter or "-", self.log_in),
            ("GET", self.things, lambda got: self._inside(got, self.mine)),
            ("POST", self.things, lambda got: self._inside(got, lambda user: self.add(user, **body(got)))),
            (
                "GET",
                rf"{self.things}/(\d+)",
                lambda got, at: self._inside(got, lambda user: self.one(user, at)),
            ),
        ]

    def sign_up(self, got: Got) -> bytes:
        raise NotImplementedError

    def log_in(self, got: Got) -> bytes:
        raise NotImplementedError

    def who(self, got: Got) -> str:
        """Who asks, by what the request carries."""
        return self.bearer(got)

    def enveloped(self, found: Any) -> Any:
        return found

    def _inside(self, got: Got, served: Callable[[str], Any]) -> bytes:
        user = self.who(got)
        if not user:
            return json_answer(401, {"detail": "Not authenticated"}, "www-authenticate: Basic realm=x")
        found = served(user)
        status = 404 if found is None else 201 if got.method == "POST" else 200
        return json_answer(status, self.enveloped(found) if found is not None else {"detail": "Not Found"})


def _shown(description: Mapping[str, Any] | str) -> bytes:
    if isinstance(description, str):
        return http_answer(200, description.encode(), "content-type: text/yaml")
    return json_answer(200, description)


def body(got: Got) -> dict[str, Any]:
    """The JSON object that was sent; empty for anything else."""
    try:
        read = json.loads(got.body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) and "json" in got.headers.get("content-type", "") else {}


def form(got: Got) -> dict[str, str]:
    """The form that was sent; empty for another type."""
    kind = got.headers.get("content-type", "")
    return dict(parse_qsl(got.body.decode())) if kind.startswith("application/x-www-form-urlencoded") else {}


def multipart(got: Got) -> dict[str, str]:
    """The parts that were sent, by name; empty for another type."""
    kind = got.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        return {}
    read: Any = BytesParser().parsebytes(f"content-type: {kind}\r\n\r\n".encode() + got.body)
    parts = read.get_payload() if read.is_multipart() else []
    named = ((one.get_param("name", header="content-disposition"), one.get_payload()) for one in parts)
    return {str(name): str(text).strip() for name, text in named}


def missing(where: str, names: tuple[str, ...]) -> dict[str, Any]:
    """FastAPI's answer to a body that lacks fields."""
    wrong = [
        {"type": "missing", "loc": [where, name], "msg": "Field required", "input": {}} for name in names
    ]
    return {"detail": wrong}


def takes(schema: object, kind: str = "application/json") -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema}}}}


def fields(*names: str, required: tuple[str, ...] | None = None, **more: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(names, TEXT) | more}
    return schema | ({"required": list(required)} if required else {})


def crud(path: str, thing: str, schema: object, said: str, **more: Any) -> dict[str, Any]:
    """A collection and one thing of it, as a description has them."""
    given = [{"name": "ident", "in": "path", "required": True, "schema": {"type": "integer"}}]
    return {
        path: {
            "get": {"summary": f"List {thing}s", **more},
            "post": {"summary": f"Create {thing}", **takes(schema), **more},
        },
        f"{path}/{{ident}}": {"get": {"summary": said, "parameters": given, **more}},
    }
