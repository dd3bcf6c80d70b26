"""The pages in headless Chromium: every room at both widths, light and dark, and live; each action and its
undo by the keyboard alone; attacks that fail."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from fleet.events.daemon_events import PersonaAdded
from fleet.events.model import Footer, Header
from fleet.files import ROOT
from fleet.gate.stop import stopped
from fleet.service.ingress import IngressReply
from fleet.store.journal import Journal
from fleet.store.rows import NewRun
from fleet.web.session import TOKEN
from tests.cli.test_status import ITEMS as OTHERS
from tests.sandbox.browsing import needs_browser
from tests.triage import hostile
from tests.web.browser import Tab, browsing, serving
from tests.web.conftest import AT, FACTS, FIRST, HELD, MERGED, Served, personas

pytestmark = needs_browser

RULES = (ROOT / "node_modules/axe-core/axe.min.js").read_text("utf-8")
ITEM = f"/items/{FIRST}"
ROOMS = ("/", "/worklist", ITEM, "/runs", "/runs/run0", "/personas", "/platform", "/log", "/unlock")
SHAPES = [(path, width, dark) for path in ROOMS for width in (1280, 390) for dark in (False, True)]
LIVE = tuple(room for room in ROOMS if room != "/unlock")
FITS = """(() => {
  const out = [...document.querySelectorAll('main *')].filter(one => {
    const box = one.getBoundingClientRect(), head = one.closest('thead');
    const unseen = head && getComputedStyle(head).position === 'absolute';
    return box.width && box.right > innerWidth + 1 && !unseen;
  }).map(one => one.outerHTML.slice(0, 80));
  return { wide: document.documentElement.scrollWidth - innerWidth, out };
})()"""


EVIL = "http://evil.test/"
ATTACK = """<!doctype html><title>x</title><iframe src="OURS/"></iframe>
<form method="post" action="OURS/stop"><input name="csrf"><button>You have won</button></form>"""


@pytest.fixture
def tab(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tab]:
    with serving(served.app, {EVIL: ATTACK}) as url:
        monkeypatch.setenv("QA_BROKER", url)
        with browsing(url) as tab:
            yield tab


def clean(tab: Tab) -> list[Any]:
    """What axe-core finds; it is put in by the debugger, which the page's policy does not bind."""
    tab.run(f"{RULES}; true")
    found: list[Any] = tab.run(
        "axe.run(document).then(one => one.violations.map(v => [v.id, v.nodes[0].html.slice(0, 120)]))"
    )
    return found


def fits(tab: Tab, path: str, width: int, dark: bool) -> None:
    tab.shape(width, dark=dark)
    tab.open(path)
    where = (path, width, dark)
    assert (where, tab.run(FITS)) == (where, {"wide": 0, "out": []})
    assert (where, clean(tab)) == (where, [])
    assert tab.run(f"typeof {hostile.CANARY}") == "undefined"
    assert tab.visited.events == []
    if folder := os.environ.get("PICTURES"):
        name = path.strip("/").replace("/", "-").partition("?")[0] or "now"
        tab.picture(Path(folder, f"{name}-{width}{'-dark' if dark else ''}.png"))


def test_what_a_person_sees_and_does(served: Served, tab: Tab) -> None:
    _keys_lead_through_the_list(tab)
    _the_first_page_follows_what_happens(served, tab)
    _an_item_is_decided_on_and_the_decision_taken_back(served, tab)
    _everything_is_stopped_and_goes_on(served, tab)
    _another_page_changes_nothing(served, tab)


def _keys_lead_through_the_list(tab: Tab) -> None:
    tab.open("/worklist")
    at = "document.activeElement.getAttribute('href')"
    rows: list[str] = tab.run(
        "[...document.querySelectorAll('[data-row]')].map(one => one.getAttribute('href'))"
    )
    tab.press("j")
    tab.press("j")
    assert tab.run(at) == rows[1]
    tab.press("k")
    assert tab.run(at) == rows[0]
    tab.press("/")
    assert tab.run("document.activeElement.id") == "search"
    tab.press("j")  # is a letter there
    assert tab.run("document.activeElement.value") == "j"
    tab.open("/worklist")
    tab.press("j")
    tab.visited.loaded = False
    tab.press("d")  # decides of the item in the list; without a session there is nothing to fill in
    tab.settle()
    assert tab.run("location.pathname + location.hash") == f"{rows[0]}#d"
    tab.open("/worklist")
    for _ in range(40):  # by Tab alone, from the link that skips the navigation to the first item
        tab.press("Tab")
        if tab.run(at) == rows[0]:
            break
    assert tab.run(at) == rows[0]
    tab.visited.loaded = False
    tab.press("Enter")
    tab.settle()
    assert tab.run("location.pathname") == rows[0]


def _the_first_page_follows_what_happens(served: Served, tab: Tab) -> None:
    tab.open("/")
    while not served.pages.followed:
        tab.run("1")
    served.pages.daemon(PersonaAdded(at=AT, persona=f"qa-<img src=x onerror={hostile.CANARY}=1>", sha256="0"))
    tab.until("document.querySelector('.lines').textContent.includes('persona qa-<img')")
    assert tab.run("document.getElementById('live').textContent").startswith("persona qa-<img")
    assert tab.run(f"typeof {hostile.CANARY}") == "undefined"


def _an_item_is_decided_on_and_the_decision_taken_back(served: Served, tab: Tab) -> None:
    tab.open(ITEM)
    assert tab.run("document.querySelectorAll('main form').length") == 0
    tab.open(f"/unlock?back={ITEM}")
    tab.fill("[name=token]", (served.state / TOKEN).read_text().strip())
    tab.leave("main button")
    assert tab.run("location.pathname") == ITEM
    assert tab.run("document.cookie") == ""
    tab.open("/worklist")
    tab.press("j")
    tab.visited.loaded = False
    tab.press("d")
    tab.settle()
    assert tab.run("location.pathname") == ITEM
    tab.run("document.activeElement.value = 'by design <b>'")
    tab.visited.loaded = False
    tab.press("Enter")
    tab.settle()
    assert "is dismissed" in tab.run("document.querySelector('.banner').textContent")
    assert "by design <b>" in tab.run("document.querySelector('main').textContent")
    tab.leave(".banner button")
    assert "was undone" in tab.run("document.querySelector('.banner').textContent")
    assert clean(tab) == []


def _everything_is_stopped_and_goes_on(served: Served, tab: Tab) -> None:
    tab.open("/")
    tab.run("document.querySelector('.brakes summary').click()")
    tab.fill(".brakes [name=reason]", "a leak")
    tab.leave(".brakes form button")
    assert stopped(served.state) is not None
    assert tab.run("document.querySelector('h1').textContent") == "Stopped"
    assert clean(tab) == []
    tab.fill(".banner [name=reason]", "looked")
    tab.leave(".banner button")
    assert stopped(served.state) is None


def _another_page_changes_nothing(served: Served, tab: Tab) -> None:
    tab.open("/")
    refused = tab.run(
        "fetch('/stop', {method: 'POST', body: new URLSearchParams({reason: 'x'})}).then(one => one.status)"
    )
    assert refused == 403  # our own origin, without the word of a form
    blocked = """new Promise(done => {
      document.addEventListener('securitypolicyviolation', one => done(one.effectiveDirective), {once: true});
      const made = document.createElement('script');
      made.textContent = 'globalThis.ran = 1';
      document.body.append(made);
    })"""
    assert tab.run(blocked) == "script-src-elem"
    assert tab.run("typeof globalThis.ran") == "undefined"
    word = tab.run("document.querySelector('[name=csrf]').value")
    tab.visit(EVIL)
    assert tab.run("frames.length && document.querySelector('iframe').contentDocument") is None
    tab.fill("[name=csrf]", word)  # even if it knew the word of the form
    tab.leave("button")
    assert "was sent by another page" in tab.run("document.body.textContent")
    assert stopped(served.state) is None
    tab.visit("http://rebound.test/")  # a name of another's that leads here
    assert tab.run("document.body.textContent") == "unknown host\n"


def test_every_room_fits_and_breaks_no_rule_of_accessibility(tab: Tab) -> None:
    for shape in SHAPES:
        fits(tab, *shape)


def test_each_room_follows_what_happens_and_keeps_what_was_unfolded(served: Served, tab: Tab) -> None:
    served.pages.run(Footer(run="live0001", at=AT, outcome="done", calls=1))
    head = asyncio.run(_trigger(served, "live0002"))
    folder = served.state / "runs" / "live0002"
    folder.mkdir(parents=True)
    (folder / "trajectory.jsonl").write_text(f"{head.model_dump_json()}\n")
    served.pages.run(head)
    for path in (*(room for room in LIVE if room != "/runs/run0"), "/runs/live0002"):
        tab.open(path)
        tab.run("for (const one of document.querySelectorAll('[data-live]')) one.dataset.old = '1'")
        tab.run("for (const one of document.querySelectorAll('[data-live] details')) one.open = true")
        many = tab.run("document.querySelectorAll('[data-live] details').length")
        while tab.run("document.querySelector('[data-old]') !== null"):
            served.pages.daemon(PersonaAdded(at=AT, persona="qa-more", sha256="0"))
        assert (path, tab.run("document.querySelectorAll('[data-live] details[open]').length")) == (
            path,
            many,
        )
        while not tab.run("document.getElementById('live').textContent").startswith("persona qa-more"):
            served.pages.daemon(PersonaAdded(at=AT, persona="qa-more", sha256="0"))


async def _trigger(served: Served, run: str) -> Header:
    """A run in the queue, and what its record begins with."""
    row = NewRun(
        run_id=run, persona="qa-smoke", key=run, platform="devnet", trigger="every 1h", rung="", budget={}
    )
    async with await Journal.open(served.state / "fleet.db") as journal:
        await journal.trigger(row)
    brief = {"persona_sha256": "0", "driver": "playbook", "platform": "devnet", "chain_id": 1}
    rights: dict[str, Any] = {"rung": "observe", "jail": "bwrap", "budget": {}, "trigger": "every 1h"}
    return Header(run=run, at=AT, persona="qa-smoke", **brief, **rights)


DECISIONS = {
    "dismiss": "is dismissed",
    "snooze": "is snoozed",
    "severity": "has the severity",
    "merge": "is part of the other item",
}
"""Kinds, and what is said afterwards."""


def test_each_action_and_its_undo_by_the_keyboard_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    async def ask(wish: bytes) -> IngressReply:
        asked.append(json.loads(wish))
        return IngressReply(202, {"runs": [{"run": "run0"}]})

    async def facts() -> Mapping[str, Any]:
        return FACTS

    asyncio.run(_trigger(served, "live0003"))
    folder = served.state / "runs" / "run0"
    folder.mkdir(parents=True)
    (folder / "trajectory.jsonl").write_text("not json\n")
    app = Starlette(routes=served.pages.routes(facts, personas(), ask))
    with serving(app, {}) as url:
        monkeypatch.setenv("QA_BROKER", url)
        with browsing(url) as tab:
            _unlocks(served, tab)
            _decides(tab)
            _releases(tab)
            _runs(tab, asked)
            _compares(served, tab)
            _brakes(served, tab)


def _unlocks(served: Served, tab: Tab) -> None:
    tab.open(ITEM)
    tab.reach("a.unlock")
    tab.enter()
    tab.reach("[name=token]")
    tab.type((served.state / TOKEN).read_text().strip())
    tab.enter()
    assert tab.run("location.pathname") == ITEM


def _acts(tab: Tab, form: str, **fields: str) -> None:
    """Unfold a form, fill it in and send it, by keys."""
    if tab.run(f"!!document.querySelector('details:has({form})')"):
        tab.reach(f"details:has({form}) > summary")
        tab.press("Enter")
    for name, text in (*fields.items(), ("reason", "by hand")):
        tab.reach(f"{form} [name={name}]")
        tab.type(text)
    tab.enter()


def _undoes(tab: Tab, said: str) -> None:
    assert said in tab.run("document.querySelector('.banner, main').textContent")
    tab.reach(".banner button")
    tab.enter()
    assert "it was undone" in tab.run("document.querySelector('.banner').textContent")


def _decides(tab: Tab) -> None:
    other = OTHERS[0].fingerprint
    for kind, said in DECISIONS.items():  # what an item offers while nothing hides it
        tab.open(ITEM)
        _acts(tab, f'form[action="{ITEM}/{kind}"]', **({"other": other} if kind == "merge" else {}))
        _undoes(tab, said)
    tab.open(ITEM)
    _acts(tab, f'form[action="{ITEM}/dismiss"]')
    tab.open(ITEM)
    _acts(tab, f'form[action="{ITEM}/reopen"]')
    _undoes(tab, "is reopened")
    tab.open(f"/items/{MERGED}")
    _acts(tab, f'form[action="/items/{MERGED}/split"]')
    _undoes(tab, "is an item of its own")


def _releases(tab: Tab) -> None:
    tab.open("/")
    _acts(tab, f'form[action="/items/{HELD}/release"]')
    _undoes(tab, "is released")


def _runs(tab: Tab, asked: list[dict[str, Any]]) -> None:
    tab.open("/personas")
    start = 'form[action="/personas/qa-smoke/start"]'
    for which in (f"{start}:not(:has(select)) button", f"{start}:has(select) button"):
        tab.open("/personas")
        tab.reach(f"details:has({start}) > summary")
        tab.press("Enter")
        tab.reach(which)
        tab.enter()
        assert tab.run("location.pathname") == "/runs/run0"
    tab.reach('form[action="/runs/run0/replay"] button')
    tab.enter()
    probe = personas()["qa-smoke"].persona.probe[0].id
    wished = [{name: word for name, word in one.items() if name != "ident"} for one in asked]
    assert wished == [
        {"persona": "qa-smoke", "probe": ""},
        {"persona": "qa-smoke", "probe": probe},
        {"replay": "run0"},
    ]
    assert len({one["ident"] for one in asked}) == 3
    tab.open("/runs/live0003")
    _acts(tab, 'form[action="/runs/live0003/cancel"]')
    assert "by hand" in tab.run("document.querySelector('main').textContent")


def _compares(served: Served, tab: Tab) -> None:
    (served.state / "platforms").mkdir()
    profile = 'name = "devnet"\nlog = "file"\n[web]\nsite = "http://127.0.0.1:1"\n'
    (served.state / "platforms" / "devnet.toml").write_text(profile)
    tab.open("/log")
    tab.reach('form[action="/log/verify"] button')
    tab.enter()
    assert "the log differs from index 0 on" in tab.run("document.querySelector('main').textContent")


def _brakes(served: Served, tab: Tab) -> None:
    tab.open("/")
    _acts(tab, 'form[action="/stop"]')
    assert stopped(served.state) is not None
    tab.reach(".banner [name=reason]")
    tab.type("looked")
    tab.enter()
    assert stopped(served.state) is None
    tab.reach('form[action="/lock"] button')
    tab.enter()
    assert tab.run("document.querySelectorAll('form[method=post]').length") == 0
