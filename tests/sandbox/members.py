"""An API with accounts, sessions and private notes: a function from a request to an answer, with switches."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from typing import Any

from tests.sandbox.doubles import Got, http_answer, json_answer

TEXT: dict[str, Any] = {"type": "string", "maxLength": 80}
_KEYS = {"type": "object", "required": ["user", "password"], "properties": {"user": TEXT, "password": TEXT}}
_NOTE = {"type": "object", "required": ["title"], "properties": {"title": TEXT, "stars": {"type": "integer"}}}
_SELF = {"type": "object", "properties": {"motto": TEXT}}


def _taking(schema: dict[str, Any], summary: str = "-") -> dict[str, Any]:
    return {"summary": summary, "requestBody": {"content": {"application/json": {"schema": schema}}}}


DESCRIPTION: dict[str, Any] = {
    "openapi": "3.0.3",
    "paths": {
        "/v1/signup": {"post": _taking(_KEYS)},
        "/v1/login": {"post": _taking(_KEYS)},
        "/v1/logout": {"post": {"summary": "Ends the session"}},
        "/v1/me": {"get": {"summary": "Who I am"}, "put": _taking(_SELF)},
        "/v1/notes": {"get": {"summary": "My notes"}, "post": _taking(_NOTE)},
        "/v1/notes/{note}": {"get": {"summary": "One of my notes"}, "put": _taking(_NOTE)},
    },
}


class Members:
    """Each switch is one defect: a token unchecked, with a known secret, or kept after its end; notes that
    others read or change; a role that is settable; no limit on log-ins.

    Or a habit of healthy APIs: `dated` tokens that say when they end, a `silent` lock that answers as a wrong
    password, a `polite` refusal of a token (200, and words), notes that are `nameless` in the answer to POST.
    """

    def __init__(self, *switches: str) -> None:
        self.on = frozenset(switches)
        self.secret = b"changeme" if "guessable" in self.on else b"0d1e7c55b1f04d6b"
        self.people: dict[str, dict[str, Any]] = {}
        self.notes: list[dict[str, Any]] = []
        self.ended: set[str] = set()
        self.failed: dict[str, int] = {}

    def __call__(self, got: Got) -> bytes:
        body = json.loads(got.body) if got.body else {}
        if got.path == "/openapi.json":
            return json_answer(200, DESCRIPTION)
        if got.path == "/guide":
            return http_answer(200, b"At most 5 attempts to log in.", "content-type: text/plain")
        if got.path == "/v1/signup":
            self.people[body["user"]] = {"user": body["user"], "password": body["password"], "role": "guest"}
            return json_answer(201, {"user": body["user"]})
        if got.path == "/v1/login":
            return self._login(body)
        token = got.headers.get("authorization", "").removeprefix("Bearer ")
        user = self._user(token)
        if user not in self.people:
            polite = token and "polite" in self.on
            return json_answer(200 if polite else 401, {"error": "no session"})
        return self._served(got.method, got.path, user, body, token)

    def _login(self, body: dict[str, Any]) -> bytes:
        user = str(body["user"])
        if self.failed.get(user, 0) >= 5 and "tries" not in self.on:
            return json_answer(401, {"error": "no"}) if "silent" in self.on else json_answer(429, {})
        if self.people.get(user, {}).get("password") != body["password"]:
            self.failed[user] = self.failed.get(user, 0) + 1
            return json_answer(401, {"error": "no"})
        claims = {"sub": user} | ({"exp": int(time.time()) + 900} if "dated" in self.on else {})
        signed = ".".join(_b64(json.dumps(part).encode()) for part in ({"alg": "HS256"}, claims))
        return json_answer(200, {"data": {"access_token": f"{signed}.{self._signature(signed)}"}})

    def _user(self, token: str) -> str:
        head, _, signature = token.rpartition(".")
        if not head or token in self.ended:
            return ""
        checked = "unsigned" not in self.on or '"none"' not in str(_read(head.partition(".")[0]))
        if checked and not hmac.compare_digest(signature, self._signature(head)):
            return ""
        return str(json.loads(_read(head.rpartition(".")[2]))["sub"])

    def _signature(self, signed: str) -> str:
        return _b64(hmac.new(self.secret, signed.encode(), hashlib.sha256).digest())

    def _served(self, method: str, path: str, user: str, body: dict[str, Any], token: str) -> bytes:
        if path == "/v1/logout":
            self.ended |= set() if "kept" in self.on else {token}
            return json_answer(200, {})
        if path == "/v1/me":
            known = self.people[user]
            known |= {key: body[key] for key in ("motto", *(["role"] * ("raises" in self.on))) if key in body}
            return json_answer(200, {"user": user, "role": known["role"], "motto": known.get("motto", "")})
        if path == "/v1/notes" and method == "POST":
            self.notes.append({"id": len(self.notes) + 1, "of": user, "title": body["title"]})
            return json_answer(201, {"made": 1} if "nameless" in self.on else self.notes[-1])
        if path == "/v1/notes/":
            return json_answer(405, {"error": "a note has a number"})
        if path == "/v1/notes":
            return json_answer(200, [note for note in self.notes if note["of"] == user])
        found = re.fullmatch(r"/v1/notes/(\d+)", path)
        note = next((one for one in self.notes if found and one["id"] == int(found[1])), None)
        freed = {"GET": "reads", "PUT": "writes"}.get(method, "") in self.on
        if note is None or (note["of"] != user and not freed):
            return json_answer(404, {"error": "no such note"})
        note["title"] = body.get("title", note["title"])
        return json_answer(200, note)


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read(part: str) -> str:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
