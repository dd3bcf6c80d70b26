"""Accounts that the calls of one batch share, and the questions that have accounts of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.drivers.explore.account.api_rows import AccountRows, Row
from fleet.drivers.explore.account.ways import ApiPlaces
from fleet.personas.model import Step
from tests.sandbox.doubles import Got, bench, json_answer, run_guest

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
