"""What acts leave on pages: noted before each act, the same after a kill, deleted where that is offered."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from fleet.broker.egress_record import CUT
from fleet.runs.call.choices import SILENT
from fleet.runs.call.targets import target_of
from fleet.runs.settlement.left import created, fate, left_there, remove_made, settle_pages
from fleet.store.rows import EffectRow
from sandbox.spec import Context
from sandbox.tools import TOOLS
from tests.accounts.playing import GRANTED
from tests.runs.table import RUN, Table, persona, seated
from tests.runs.test_nothing_lost import CART
from tests.sandbox.doubles import Got, bench, json_answer

pytestmark = pytest.mark.anyio
SITE = "http://site/cart"


def act(tool: str = "qa_fetch", method: str = "POST", call: int = 3) -> EffectRow:
    data = {"call": call, "tool": tool, "method": method, "url": SITE, "what": "post"}
    return EffectRow(
        effect_id=1, run_id=RUN, kind="page", ref=f"{method} {SITE}", state="open", data=data, at=""
    )


def sent(status: int, rule: str = "", call: int = 3, **more: Any) -> dict[str, Any]:
    row = {"call": call, "verb": "POST", "host": "site", "path": "/cart", "status": status, "rule": rule}
    return row | more


@pytest.mark.parametrize(
    ("result", "requests", "state", "said"),
    [
        (None, [], "failed", "nothing was sent"),
        (None, [sent(403, "never")], "failed", "nothing was taken"),
        (None, [sent(0, CUT)], "done", "its answer is not known"),  # killed while it was on its way
        (None, [sent(200)], "done", "no answer kept"),
        (None, [sent(0, CUT, call=1, last_call=9)], "done", "its answer is not known"),  # in a batch
        (None, [sent(0, CUT, call=4)], "failed", "nothing was sent"),
        ({"status": 200}, [sent(200)], "done", "it answers 200"),
        ({"status": 500}, [sent(500)], "done", "it answers 500"),
        ({"status": 404}, [sent(404)], "failed", "it answers 404"),
        ({"status": 0}, [], "failed", "nothing was taken"),
        ({"status": 0}, [sent(0, CUT)], "done", "its answer is not known"),
    ],
)
def test_what_became_of_an_act_is_read_from_the_records(
    result: dict[str, Any] | None, requests: list[dict[str, Any]], state: str, said: str
) -> None:
    found = fate(act(), result, requests)
    assert (found[0], said in found[1]["why"]) == (state, True)


@pytest.mark.parametrize(
    ("result", "state", "things"),
    [
        ({"ok": True, "remains": ["account qa1", "POST /x"]}, "done", ["account qa1", "POST /x"]),
        ({"ok": True, "remains": []}, "released", []),
        ({"ok": False, "remains": []}, "done", []),
    ],
)
def test_accounts_are_named_by_what_stays(result: dict[str, Any], state: str, things: list[str]) -> None:
    found = fate(act("qa_account"), result, [sent(201), sent(201)])
    assert (found[0], found[1]["things"]) == (state, things)
    assert found[1]["requests"] == {"POST /cart": 2}


@pytest.mark.parametrize(
    ("headers", "text", "made"),
    [
        ({"location": "/cart/7"}, "", "http://site/cart/7"),
        ({}, '{"id": 7}', "http://site/cart/7"),
        ({}, '{"id": "a/../b"}', ""),
        ({"location": "/posts/7"}, "", ""),  # beside it: it may be anybody's
        ({"location": "http://elsewhere/cart/7"}, "", ""),
        ({"location": "/cart/../posts/7"}, "", ""),
        ({"location": "/cart"}, "", ""),
        ({}, "created", ""),
        ({}, '{"id": null}', ""),
        ({}, '[{"id": 1}]', ""),
    ],
)
def test_only_what_is_below_the_url_that_was_asked_counts_as_made(
    headers: Mapping[str, str], text: str, made: str
) -> None:
    assert created(SITE, {"headers": headers, "text": text}) == made


def shop(allow: str, deleted: list[str]) -> Any:
    """A site that makes something at each POST."""

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        match args.get("method", "GET"):
            case "POST":
                return {"ok": True, "status": 201, "headers": {"location": "/cart/7"}, "text": ""}
            case "OPTIONS":
                return {"ok": True, "status": 204, "headers": {"allow": allow}}
            case "DELETE":
                deleted.append(args["url"])
                return {"ok": True, "status": 204}
            case _:
                return {"ok": True, "status": 200}

    return answer


async def rows(table: Table) -> list[tuple[str, str]]:
    return [(one.state, one.data.get("why", "")) for one in await table.world.journal.effects(RUN, ["page"])]


@pytest.mark.parametrize(
    ("allow", "gone"), [("GET, DELETE", True), ("GET, HEAD", False)], ids=["can be deleted", "cannot"]
)
async def test_what_was_made_is_deleted_where_its_address_offers_it(
    tmp_path: Path, allow: str, gone: bool
) -> None:
    deleted: list[str] = []
    async with seated(tmp_path, persona(), answer=shop(allow, deleted), platform=CART) as table:
        session = table.drive.runner.session
        await session.call("qa_fetch", {"url": SITE, "method": "POST", "body": "x"})
        assert await rows(table) == [("open", "")]
        await remove_made(session._context, session)
        assert deleted == ["http://site/cart/7"] * gone
        [(state, why)] = await rows(table)
        assert (state, why) == (
            ("released", "deleted") if gone else ("done", "its address does not offer to delete it")
        )
        listed = left_there(await table.world.journal.effects(RUN, ["page"]))
        assert [one["made"] for one in listed] == [] if gone else ["http://site/cart/7"]


async def test_what_is_on_a_host_that_does_not_answer_stays_and_the_list_says_why(tmp_path: Path) -> None:
    """One that is silent keeps nothing of another host back."""
    deleted: list[str] = []
    async with seated(tmp_path, persona(), answer=shop("DELETE", deleted), platform=CART) as table:
        session = table.drive.runner.session
        await session.call("qa_fetch", {"url": SITE, "method": "POST", "body": "x"})
        await settle_pages(table.world, RUN)
        journal, silent = table.world.journal, "http://other/cart/1"
        effect = await journal.intend(RUN, "page", "POST http://other/cart", {**act().data, "made": silent})
        await journal.resolve(effect, "done")
        session.enter("post-exploitation", "a test")
        for _ in range(20):
            session.confidence.add(
                target_of("qa_fetch", {"url": silent}), "timeout", session.time.monotonic()
            )
        await remove_made(session._context, session)
        assert deleted == ["http://site/cart/7"]
        assert sorted(await rows(table)) == [("done", SILENT), ("released", "deleted")]


async def test_under_stop_nothing_is_deleted_and_the_list_says_what_is_there(tmp_path: Path) -> None:
    deleted: list[str] = []
    async with seated(tmp_path, persona(), answer=shop("DELETE", deleted), platform=CART) as table:
        session = table.drive.runner.session
        await session.call("qa_fetch", {"url": SITE, "method": "POST", "body": "x"})
        table.stop()
        await remove_made(session._context, session)
        assert (deleted, await rows(table)) == ([], [("done", "it answers 201")])


async def test_an_act_is_noted_before_it_is_made_and_resolved_after_a_kill(tmp_path: Path) -> None:
    seen: list[list[tuple[str, str]]] = []

    async def killed(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        seen.append(await rows(table))
        raise RuntimeError("killed")

    async with seated(tmp_path, persona(), answer=killed, platform=CART) as table:
        with pytest.raises(RuntimeError):
            await table.drive.runner.session.call("qa_fetch", {"url": SITE, "method": "POST"})
        assert seen == [[("open", "")]]
        (table.folder / "egress.jsonl").write_text(json.dumps({"n": 1, **sent(0, CUT, call=1)}) + "\n")
        await settle_pages(table.world, RUN)
        await settle_pages(table.world, RUN)  # a second start
        assert await rows(table) == [("done", "it was sent, and its answer is not known")]


async def test_accounts_remove_what_they_made_and_then_themselves() -> None:
    """In the jail, by the session that made it; what has no way to go is named."""
    there: dict[str, str] = {}

    def site(got: Got) -> bytes:
        if got.method == "DELETE":
            return json_answer(204 if there.pop(got.path, "") else 404, {})
        if got.path == "/login":
            return json_answer(200, {"token": "t" * 30})
        ident = len(there) + 1
        there[f"{got.path}/{ident}"] = json.loads(got.body or b"{}").get("name", "")
        return json_answer(201, {"id": ident})

    args = {
        "fields": {"name": "{handle}", "password": "{phrase}"},
        "login": "/login",
        "login_fields": {"name": "{handle}", "password": "{phrase}"},
        "steps": [["one", "POST", "/items", {"name": "{mark}"}], ["one", "POST", "/mails", {"name": "x"}]],
        "removes": {"/users": "/users/{id}", "/items": "/items/{id}"},
    }
    spec = TOOLS["qa_account"]
    assert spec.name in GRANTED
    assert spec.run is not None
    async with bench(site, acts="/") as it:
        before, os.environ["QA_BROKER"] = os.environ.get("QA_BROKER", ""), it.address
        try:
            asked = spec.args(url=f"{it.site.url}/users", **args)
            context = Context(run="run7", prefix="qa-run7-", deadline_s=30.0)
            result: Any = await anyio.to_thread.run_sync(spec.run, asked, context)
            first = dict(there)
            asked = spec.args(url=f"{it.site.url}/users", **{**args, "removes": {}})
            kept: Any = await anyio.to_thread.run_sync(spec.run, asked, context)
        finally:
            os.environ["QA_BROKER"] = before
    assert result.remains == ("POST /mails",)
    assert {path.split("/")[1] for path in first} == {"mails"}
    accounts = {f"account {name}" for path, name in there.items() if path.startswith("/users")}
    assert {*kept.remains} == {"POST /mails", "POST /items", *accounts}
