"""Two accounts of a web site with forms: what the explorer asks of a real one, and what the oracles say."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import anyio.to_thread
import pytest

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.account.follow_up import MadeThing, follow
from fleet.drivers.explore.account.sessions import QUESTIONS, DoorLookup, SessionExplorer
from fleet.drivers.explore.account.sessions import TOOLS as NEEDED
from fleet.drivers.explore.account.site_rows import SiteForm, SiteKnowledge
from fleet.drivers.explore.port import ExplorerContext
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.oracles.model import Exchange, Facts, Violation
from fleet.oracles.table import judge
from fleet.runs.call.guest_protocol import answer, request_line
from sandbox.browser.devtools import installed
from sandbox.sites.play_words import PlayWords
from sandbox.sites.site_visitor import parts
from sandbox.spec import Context, Mistake
from sandbox.tools import TOOLS
from tests.sandbox.clubhouse import Clubhouse
from tests.sandbox.doubles import Bench, bench

pytestmark = pytest.mark.anyio
FOUND = {
    "readable": "session-readable",
    "fixed": "session-fixed",
    "kept": "session-kept",
    "reads": "form-read",
    "exports": "form-read",
    "writes": "form-change",
    "rewrites": "form-change",
    "ranks": "form-ranked",
    "tokenless": "form-forged",
    "away": "log-in-away",
    "scripts": "form-script",
    "sums": "account-computed",
    "opens": "account-climb",
    "echoes": "account-reflected",
    "previews": "account-computed",
    "cached": "account-cached",
    "breaks": "account-quoted",
    "tickets": "form-read",
    "cancels": "form-change",
    "served": "upload-script",
    "climbs": "upload-path",
}
MADE = ("/drafts", "/drafts/{}", "/notes", "/notes/{}", "/people/{}")
needs_browser = pytest.mark.skipif(not installed(), reason="no browser here")


def explorer(
    it: Bench, *, acts: tuple[str, ...] = ("{site}/",), state: dict[str, Any] | None = None
) -> SessionExplorer:
    platform = Platform.model_validate(
        {
            "name": "p",
            "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
            "web": {"site": it.site.url, "act_paths": acts},
        }
    )
    ground = ExplorerContext(platform=platform, tools=frozenset(NEEDED), acts=True)
    return SessionExplorer(ground, Random("s"), state or {})


async def called(it: Bench, tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """The real tool through the real broker, in this process: a guest's start costs more than a row."""
    spec = TOOLS[tool]
    assert spec.run
    given = json.loads(json.dumps(args).replace("{site}", it.site.url))
    context = Context(run="run7", prefix="qa-run7-", deadline_s=60.0)
    result = await anyio.to_thread.run_sync(spec.run, spec.args(**given), context)
    return json.loads(json.dumps(asdict(result)))  # type: ignore[no-any-return]


async def explored(
    it: Bench, asking: SessionExplorer, views: tuple[str, ...] = ()
) -> tuple[list[Violation], list[Question], str]:
    """What is found by all that is asked, the questions, and every result as text; a browser opens only what
    is below `views`, because each costs half a second."""
    found: list[Violation] = []
    asked: list[Question] = []
    text = ""
    while questions := asking.ask(48):
        for question in questions:
            (step,) = question.steps
            opened = [row[2] for row in step.args.get("steps", ()) if row[1] == "VIEW"]
            if not all(path.startswith(views) for path in opened) or (opened and not views):
                continue
            seen = [Exchange(step.tool, step.args, await called(it, step.tool, dict(step.args)))]
            if step.tool == "qa_account":
                assert seen[0].result["ok"], seen[0].result["error"]
                asked.append(question)
                # what stays is named, so that it can be found: accounts by their handles
                text += json.dumps({**seen[0].result, "remains": ()})
            found += judge(seen, Facts())
            asking.learn(question, [seen[0].result])
    return found, asked, text


async def told(it: Bench, acts: tuple[str, ...], views: tuple[str, ...] = ()) -> list[str]:
    asking = explorer(it, acts=tuple(f"{{site}}{path}" for path in ("/join", "/enter", *acts)))
    found = {one.sighting.signature: one.oracle for one in (await explored(it, asking, views))[0]}
    return sorted(found.values())  # several rows may show one defect


@pytest.fixture
def clubhouse(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractAsyncContextManager[Bench]]:
    """A bench before a platform; the tools of this process find its broker."""

    @asynccontextmanager
    async def opened(club: Clubhouse, acts: str = "/") -> AsyncIterator[Bench]:
        async with bench(club, acts=acts) as it:
            monkeypatch.setenv("QA_BROKER", it.address)
            yield it

    return opened


Open = Callable[..., AbstractAsyncContextManager[Bench]]


@needs_browser
async def test_a_healthy_and_odd_site_is_quiet_and_nothing_secret_leaves_the_jail(clubhouse: Open) -> None:
    club = Clubhouse()
    async with clubhouse(club) as it:
        asking = explorer(it)
        found, asked, text = await explored(it, asking, ("/wall",))
        assert found == []
        assert {
            "/wall",
            "/drafts",
            "/drafts/{}",
            "/notes",
            "/notes/{}",
            "/people/{}",
            "/papers",
            "/leave",
        } <= {re.sub(r"\d+", "{}", path) for path in club.acts}
        assert len(club.people) == 2 * len(asked) <= 2 * QUESTIONS
        secrets = [*club.people.values(), *club.sessions, *(sid[::-1] for sid in club.sessions)]
        assert not [one for one in secrets if one in text]
        assert not [user for user in club.people if user in text]
        again = explorer(it, state=json.loads(json.dumps(asking.state())))
        assert len((await explored(it, again))[1]) < len(asked) / 2  # forms are asked in turn


@needs_browser
async def test_each_defect_is_found_by_its_own_oracle(clubhouse: Open) -> None:
    switches = ("readable", "fixed", "reads", "tokenless", "away", "rewrites", "scripts", "served", "climbs")
    viewed = ("/wall", "/papers")
    async with clubhouse(Clubhouse(*switches)) as it:
        assert await told(it, (*viewed, "/drafts", "/people"), viewed) == sorted(
            FOUND[one] for one in switches
        )


async def test_the_other_defects_need_no_browser(clubhouse: Open) -> None:
    switches = ("kept", "exports", "writes", "sums", "previews", "opens", "echoes", "cached")
    async with clubhouse(Clubhouse(*switches)) as it:
        assert await told(it, ("/leave", "/drafts")) == sorted(FOUND[one] for one in switches)


async def test_what_is_made_in_two_steps_without_a_text_is_its_makers_alone(clubhouse: Open) -> None:
    switches = ("tickets", "cancels", "breaks", "ranks")
    async with clubhouse(Clubhouse(*switches)) as it:
        assert await told(it, ("/seats", "/notes", "/people")) == sorted(FOUND[one] for one in switches)


async def test_nothing_is_asked_where_acts_are_not_permitted(clubhouse: Open) -> None:
    club = Clubhouse()
    async with clubhouse(club, "/join") as it:
        assert explorer(it, acts=()).ask(48) == []
        asked = (await explored(it, explorer(it, acts=("{site}/join",))))[1]
    assert asked == []  # a session begins at another path
    assert club.acts == []


async def test_a_form_outside_of_act_paths_is_never_sent(clubhouse: Open) -> None:
    club = Clubhouse()
    acts = ("{site}/join", "{site}/enter", "{site}/wall")
    async with clubhouse(club) as it:
        await explored(it, explorer(it, acts=acts))
    assert set(club.acts) == {"/join", "/enter", "/wall"}


START = {
    "url": "{site}/join",
    "page": "/join",
    "fields": {"user": "{handle}", "secret_password": "{phrase}", "mail": "{email}"},
    "login": "/enter",
    "login_page": "/enter",
    "login_fields": {"user": "{handle}", "secret_password": "{phrase}"},
}


@needs_browser
@pytest.mark.jail
async def test_script_that_one_account_stored_runs_in_the_others_browser_in_a_jail(
    clubhouse: Open, tmp_path: Path
) -> None:
    given = {"words": "<img src onerror={canary}(name)>"}
    steps = [["one", "POST", "/wall", given, "/wall"], ["other", "VIEW", "/wall", {}, ""]]
    jail = BwrapJail(Image(), pool=0, spool=tmp_path)
    try:
        async with clubhouse(Clubhouse("scripts")) as it:
            line = request_line(
                TOOLS["qa_account"],
                {**START, "url": f"{it.site.url}/join", "steps": steps},
                Context(run="run7", prefix="qa-run7-", deadline_s=60.0),
            )
            outcome = await jail.call(
                line, deadline_s=75.0, egress=it.broker.egress, resources=TOOLS["qa_account"].resources
            )
            result = answer(TOOLS["qa_account"], outcome)
    finally:
        await jail.aclose()
    assert [(one["status"], one["ran"]) for one in result["answers"]] == [(303, False), (200, True)]


async def test_what_an_id_names_is_changed_only_after_its_maker_read_its_mark_there(clubhouse: Open) -> None:
    club = Clubhouse("writes", "astray")
    steps = [
        ["one", "POST", "/drafts", {"text": "{mark}"}, "/drafts/new"],
        ["one", "GET", "/drafts/{id}", {}, ""],
        ["other", "POST", "/drafts/{id}", {"text": "{mark}"}, "/drafts/{id}/edit"],
    ]
    async with clubhouse(club) as it:
        result = await called(it, "qa_account", {**START, "steps": steps})
        assert [one["status"] for one in result["answers"]] == [303, 404, 0]
        assert club.drafts["9001"] == ("a stranger", "a stranger's")
        with pytest.raises(Mistake, match="who, method, path, fields, page"):
            await called(it, "qa_account", {**START, "steps": [["one", "GET", "/", {}]]})


@pytest.mark.parametrize(("switch", "sent"), [("astray", 0), ("cancels", 303)])
async def test_without_a_mark_it_is_changed_only_after_the_other_was_refused_it(
    clubhouse: Open, switch: str, sent: int
) -> None:
    """What a step led to by mistake is a stranger's, which both are served."""
    club = Clubhouse("cancels", switch)
    steps = [
        ["one", "POST", "/seats/choose", {}, "/seats"],
        ["one", "POST", "/seats/confirm", {}, "/seats/confirm"],
        ["one", "GET", "/seats/{id}", {}, ""],
        ["other", "GET", "/seats/{id}", {}, ""],
        ["other", "POST", "/seats/{id}/cancel", {}, "/seats/{id}"],
    ]
    async with clubhouse(club) as it:
        result = await called(it, "qa_account", {**START, "steps": steps})
    refused = 404 if sent else 200
    assert [one["status"] for one in result["answers"]] == [303, 303, 200, refused, sent]
    assert bool(club.cancelled) == bool(sent)


def test_a_call_that_a_document_writes_down_is_no_form_of_the_site() -> None:
    form = {"method": "POST", "action": "/join", "fields": {"name": '"a"', "password": '"b"'}, "json": True}
    platform = Platform.model_validate(
        {
            "name": "p",
            "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
            "web": {"site": "https://x.example", "act_paths": ["{site}/join"]},
        }
    )
    for json_form in (True, False):
        asking = SessionExplorer(
            ExplorerContext(platform=platform, tools=frozenset(NEEDED), acts=True), Random("s"), {}
        )
        while (asked := asking.ask(48)) and isinstance(asked[0], DoorLookup):
            for one in asked:
                here = isinstance(one, DoorLookup) and one.url == "{site}/join"
                forms = [form | {"json": json_form}] if here else []
                asking.learn(one, [{"status": 200, "forms": forms, "links": []}])
        assert bool(asked) is not json_form


def test_a_form_that_lacks_something_is_sent_with_all_its_texts() -> None:
    form = SiteForm("/drafts", "/account", {"title": "text", "text": "textarea"})
    known = SiteKnowledge("/login")
    known.forms["/drafts"], known.pages["/account"] = form, ({"status": 200}, {"status": 303})
    thing = MadeThing(form, tuple(known.written(form)))
    for status, filled in ((422, [{"text": "{mark}", "title": "{mark}"}]), (403, [])):
        answers = [{"status": status if row[1] == "POST" else 200} for row in thing.rows]
        found = follow(known, thing, answers, lambda _: True)
        rows = [row for one in found if isinstance(one, MadeThing) for row in one.rows]
        assert [row[3] for row in rows if row[:2] == ["one", "POST"]] == filled


def test_a_number_is_a_new_id_where_another_thing_has_it_elsewhere() -> None:
    words = PlayWords("https://x.example")
    known = {*parts("https://x.example/pieces/1"), ("", "1")}
    words.find_id(["https://x.example/pieces/1", "https://x.example/drafts/1"], known)
    assert words.ident == "1"
    spelling = words._spelling()
    assert [spelling.path(f"https://x.example/{one}/1") for one in ("pieces", "drafts")] == [
        "/pieces/1",
        "/drafts/{id}",
    ]
