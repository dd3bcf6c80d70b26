"""Accounts that the calls of one batch share, and the questions that have accounts of their own."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest

from fleet.drivers.explore.account.api_rows import AccountRows, Row
from fleet.drivers.explore.account.site_rows import spares
from fleet.drivers.explore.account.ways import ApiPlaces
from fleet.personas.model import Step
from tests.sandbox.doubles import Got, bench, http_answer, json_answer, run_guest

CTX = {"run": "r", "prefix": "qa-r-", "deadline_s": 20.0}
LIST: Row = ["one", "GET", "/things", {}]
MAKE: Row = ["one", "POST", "/things", {"text": "{mark}"}]
THEIRS: Row = ["other", "GET", "/things", {}]
OUT: Row = ["one", "POST", "/out", {}]


class Site:
    """Sign-ups that give a token; things that all accounts read; a way out."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.things: list[dict[str, Any]] = []
        self.over: set[str] = set()

    def __call__(self, got: Got) -> bytes:
        if got.path == "/join":
            self.tokens.append(f"token-of-number-{len(self.tokens)}-x7Qz")
            return json_answer(201, {"token": self.tokens[-1]})
        token = got.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens or token in self.over:
            return json_answer(401, {"error": "no session"})
        if got.path == "/out":
            self.over.add(token)
        elif got.method == "POST":
            self.things.append({"id": len(self.things) + 1, **json.loads(got.body)})
        return json_answer(200, self.things)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("rows", "more", "joined", "marks"),
    [
        # the second call knows nothing that the first one wrote by its own mark, and makes `other`
        ([[LIST, MAKE, LIST], [LIST, THEIRS, MAKE, LIST]], {}, 2, [[0, 1, 1], [0, 0, 1, 1]]),
        ([[MAKE], [MAKE]], {"shared": False}, 2, [[1], [1]]),
        ([[OUT, LIST], [LIST]], {}, 2, [[0, 0], [0]]),  # a session that ended is nobody's
        ([[LIST], [LIST]], {"removes": {"/join": "/me"}}, 2, [[0], [0]]),  # it was removed after the first
        ([[LIST], [LIST]], {"fields": {"name": "{handle}", "role": "seller"}}, 1, [[0], [0]]),
    ],
)
async def test_calls_of_a_batch_share_accounts(
    rows: list[list[Row]], more: dict[str, Any], joined: int, marks: list[list[int]]
) -> None:
    site = Site()
    async with bench(site, acts="/") as it:
        fields = {"name": "{handle}", "password": "{phrase}"}
        start = {"url": f"{it.site.url}/join", "fields": fields, "shared": True, **more}
        calls = [{"args": {**start, "steps": row}, "group": at} for at, row in enumerate(rows)]
        asked = {"v": 1, "tool": "qa_account", "calls": calls, "starts_s": 20.0, "ctx": CTX}
        code, out, _ = await run_guest(json.dumps(asked).encode() + b"\n", it.address)
    results = [json.loads(line)["result"] for line in out.splitlines()]
    assert (code, [one["ok"] for one in results]) == (0, [True] * len(rows))
    assert [[int(got["one"]) for got in one["answers"]] for one in results] == marks
    assert len(site.tokens) == joined
    accounts = [what for one in results for what in one["remains"] if what.startswith("account ")]
    assert len(accounts) == (0 if "removes" in more else joined)  # each that stays is told once


LOOK: Row = ["one", "GET", "/notes", {}, ""]
WRITE: Row = ["one", "POST", "/notes", {"text": "{mark}"}, "/notes"]
LEAVE: Row = ["one", "POST", "/logout", {}, ""]
FORM = '<form method="post" action="{}">{}<input name="{}"><button>Send</button></form>'


class FormSite:
    """Forms that sign up and log in; notes that all accounts read, each with a page of its own."""

    def __init__(self) -> None:
        self.joined = 0
        self.sessions: set[str] = set()
        self.notes: list[str] = []

    def __call__(self, got: Got) -> bytes:
        cookie = got.headers.get("cookie", "").removeprefix("s=")
        given = dict(parse_qsl(got.body.decode()))
        if got.path == "/join" and got.method == "POST":
            self.joined += 1
            session = f"session-{self.joined}-k3Xw8Lq2"
            self.sessions.add(session)
            return page(303, "", "location: /notes", f"set-cookie: s={session}")
        if got.path == "/join":
            return page(200, FORM.format("/join", '<input name="password" type="password">', "name"))
        if cookie not in self.sessions:
            return page(303, "", "location: /join")
        if got.path == "/logout":
            self.sessions.discard(cookie)
        elif got.method == "POST":
            self.notes.append(given["text"])
            return page(303, "", f"location: /notes/{len(self.notes)}0")
        noted = "".join(f'<a href="/notes/{at}0">{text}</a>' for at, text in enumerate(self.notes, 1))
        return page(200, FORM.format("/notes", "", "text") + noted)


def page(status: int, body: str, *headers: str) -> bytes:
    return http_answer(status, body.encode(), "content-type: text/html", *headers)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("rows", "shared", "joined", "marks"),
    [
        # by another mark, and the thing that was made before is not the one that is made now
        ([[LOOK, WRITE, LOOK], [LOOK, WRITE, LOOK]], True, 2, [[0, 1, 1], [0, 1, 1]]),
        ([[WRITE], [WRITE]], False, 4, [[1], [1]]),
        ([[LEAVE, LOOK], [WRITE]], True, 4, [[0, 0], [1]]),  # a session that ended is nobody's
    ],
)
async def test_calls_of_a_batch_share_accounts_of_forms(
    rows: list[list[Row]], shared: bool, joined: int, marks: list[list[int]]
) -> None:
    site = FormSite()
    async with bench(site, acts="/") as it:
        fields = {"name": "{handle}", "password": "{phrase}"}
        start = {"url": f"{it.site.url}/join", "fields": fields, "page": "/join", "login_page": "/join"}
        args: dict[str, Any] = {**start, "shared": shared}
        calls = [{"args": {**args, "steps": row}, "group": at} for at, row in enumerate(rows)]
        asked = {"v": 1, "tool": "qa_account", "calls": calls, "starts_s": 20.0, "ctx": CTX}
        code, out, _ = await run_guest(json.dumps(asked).encode() + b"\n", it.address)
    results = [json.loads(line)["result"] for line in out.splitlines()]
    assert (code, [one["ok"] for one in results]) == (0, [True] * len(rows)), results
    assert [[int(got["one"]) for got in one["answers"]] for one in results] == marks
    assert site.joined == joined
    accounts = [what for one in results for what in one["remains"] if what.startswith("account ")]
    assert len(accounts) == joined  # each that stays is told once
    links = [set(one["answers"][-1]["links"]) for one in results]
    assert links[-1] >= {"/notes/{id}"}


@pytest.mark.parametrize(
    ("row", "shares"),
    [
        (["one", "POST", "/notes", {"text": "{mark}"}, "/notes"], True),
        (["foreign", "POST", "/notes", {"text": "{mark}"}, "/notes"], True),
        (["anonymous", "GET", "/notes/{one-id}", {}, ""], True),
        (["again", "POST", "/login", {}, "/login"], False),
        (["one", "POST", "/logout", {}, ""], False),
        (["one", "GET", "/logout", {}, ""], False),
        (["one", "POST", "/settings", {"name": "x"}, "/settings"], False),
        (["other", "POST", "/u/{one-id}/edit", {"name": "x"}, ""], False),
        (["other", "POST", "/edit", {"user": "{one-id}"}, ""], False),
    ],
)
def test_a_row_that_changes_an_account_of_forms_has_its_own(row: Row, shares: bool) -> None:
    assert spares([LOOK, row]) is shares


@pytest.mark.parametrize(
    ("step", "shares"),
    [
        (["one", "POST", "/orders", {"note": "{mark}", "lines": [{"item": 1}]}], True),
        (["other", "DELETE", "/orders/{id-1}", {}], True),
        (["anonymous", "GET", "/users/{one.id}", {}], True),
        (["wrong", "GET", "/orders", {}], False),
        (["one", "POST", "/login", {}], False),
        (["one", "GET", "/logout", {}], False),
        (["one", "PATCH", "/api/me", {"name": "x"}], False),
        (["one", "POST", "/api#updateProfile", {"name": "x"}], False),
        (["other", "POST", "/orders", {"owner": "{one.id}"}], False),
        (["one", "POST", "/orders", {"order": {"is_admin": True}}], False),
        (["one", "POST", "/orders", {"lines": [{"password": "x"}]}], False),
    ],
)
def test_what_changes_an_account_has_accounts_of_its_own(step: Row, shares: bool) -> None:
    places = ApiPlaces(str, str, bool, listens=False, pages=list)
    start = {"url": "{site}/join", "fields": {}, "login": "/login", "login_fields": {}}
    rows = AccountRows({}, Step(tool="qa_fetch", args={"url": "{site}/openapi.json"}), places, start)
    args = rows.asked([LIST, step]).steps[0].args
    assert args.get("shared", False) is shares
