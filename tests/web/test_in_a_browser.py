"""The pages in headless Chromium: shape, contrast, keys, live update, decisions, and attacks that fail.

The short form looks at the two rooms with most in them, at one width each; PAGES=all looks at every room at
both widths, light and dark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.events.daemon_events import PersonaAdded
from fleet.files import ROOT
from fleet.gate.stop import stopped
from fleet.web.session import TOKEN
from tests.sandbox.browsing import needs_browser
from tests.triage import hostile
from tests.web.browser import Tab, browsing, serving
from tests.web.conftest import AT, FIRST, Served

pytestmark = needs_browser

RULES = (ROOT / "node_modules/axe-core/axe.min.js").read_text("utf-8")
ITEM = f"/items/{FIRST}"
ROOMS = ("/", "/worklist", ITEM, "/runs", "/runs/run0", "/personas", "/platform", "/log", "/unlock")
WHOLE = os.environ.get("PAGES") == "all"
SHAPES = [(path, width, dark) for path in ROOMS for width in (1280, 390) for dark in (False, True)]
SHORT = (("/", 390, True), ("/worklist?state=all", 1280, False))
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
    for shape in SHORT:
        fits(tab, *shape)
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


@pytest.mark.skipif(not WHOLE, reason="PAGES=all is not set: every room at both widths, light and dark")
def test_every_room_fits_and_breaks_no_rule_of_accessibility(tab: Tab) -> None:
    for shape in SHAPES:
        fits(tab, *shape)
