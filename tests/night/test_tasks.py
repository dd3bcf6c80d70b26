"""Ten tasks of an operator on a real daemon, by page in a real browser, and by commands."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from fleet.files import ROOT
from fleet.gate.stop import resume, stopped
from fleet.web.session import TOKEN
from tests.night.evening import BROKEN, EVENING, Night, evening
from tests.night.tasks import TASKS, OperatorTask, table
from tests.notices.stand import receiving_inbox
from tests.sandbox.browsing import needs_browser
from tests.web.browser import Tab, browsing, serving

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(600)]

PACES = {"qa-security": 'every = "20s"', "qa-triage": 'every = "5s"', "qa-perf": ""}
FIND = """(() => {
  const all = [...document.querySelectorAll(%s)].filter(one => one.checkVisibility());
  const text = one => one.textContent.trim().replace(/\\s+/g, ' ');
  return all.find(one => text(one) === %s) ?? all.find(one => text(one).includes(%s));
})()"""
WHAT = {"follow": "a", "press": "button", "open": "summary"}


def through(url: str) -> ASGIApp:
    """A reverse proxy before the daemon's pages; what stays open it does not pass on."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        path = scope["path"] + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        if path == "/changes":
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})
            return
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.request(
                scope["method"], url + path, content=body, headers=list(scope["headers"])
            )
        left = (b"transfer-encoding", b"connection")
        kept = [(name, value) for name, value in answer.headers.raw if name.lower() not in left]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
        await send({"type": "http.response.body", "body": answer.content})

    return app


@pytest.fixture
async def night(tmp_path: Path) -> AsyncIterator[Night]:
    """A critical item, a refused persona, and something spent on the day before."""
    with receiving_inbox() as inbox:
        async with evening(tmp_path, inbox, PACES) as one:
            (one.personas / "qa-broken.md").write_text(BROKEN)
            await one.until(lambda: any("qa-broken" in line for line in one.notices()))
            day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
            with closing(sqlite3.connect(one.at.state / "fleet.db", timeout=30)) as db, db:
                db.execute("INSERT INTO days (day, owner, unit, spent) VALUES (?, '', 'calls', 41)", [day])
            yield one


@contextmanager
def unlocked(night: Night, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tab]:
    with serving(through(night.url), {}) as url:
        monkeypatch.setenv("QA_BROKER", url)
        with browsing(url) as tab:
            tab.open("/unlock")
            tab.fill("[name=token]", (night.at.state / TOKEN).read_text().strip())
            tab.leave("main button")
            yield tab


def take(tab: Tab, step: str) -> None:
    """One step of a person."""
    act, _, words = step.partition(" ")
    if act == "write":
        field = "[...document.querySelectorAll('[name=reason]')].find(one => one.checkVisibility())"
        tab.run(f"{field}.value = {json.dumps(words)}")
        return
    found = FIND % (json.dumps(WHAT[act]), json.dumps(words), json.dumps(words))
    assert tab.run(f"Boolean({found})"), f"nothing to {step} at {tab.run('location.pathname')}"
    tab.visited.loaded = False
    tab.run(f"{found}.click()")
    if act != "open":
        tab.settle()


@needs_browser
@pytest.mark.skipif("NIGHT" not in os.environ, reason="takes minutes: make night")
async def test_ten_tasks(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    item = next(one["fingerprint"] for one in night.listed() if one["title"] == EVENING)
    run = next(
        one["run"]
        for one in json.loads(night.says("runs", "list", "--all", "--json"))
        if one["persona"] == "qa-security" and one["state"] == "ended"
    )
    kinds = json.loads(night.says("report", "--json"))["coverage"]
    unasked = next(one["name"] for one in kinds if one["status"] == "not asked")
    know = {"ITEM": item, "RUN": run, "SITE": night.stand.web.url, "UNASKED": unasked}
    await to_thread.run_sync(_by_page, night, know, monkeypatch)
    for task in TASKS:
        said = ""
        for line in task.commands:
            words = [know.get(word, word) for word in shlex.split(line)]
            said = await to_thread.run_sync(night.says, *words)
        _hold(night, task, know, said)


def _by_page(night: Night, know: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with unlocked(night, monkeypatch) as tab:
        for task in TASKS:
            if task.name != "undo that":
                tab.open("/")
            for step in task.page:
                act, _, words = step.partition(" ")
                take(tab, f"{act} {know.get(words, words)}")
            _hold(night, task, know, " ".join(tab.run("document.body.innerText").split()))


def _hold(night: Night, task: OperatorTask, know: dict[str, str], said: str) -> None:
    """What is so after a task, whichever way it was done."""
    shows = task.shows
    for name, value in know.items():
        shows = shows.replace(name, value)
    assert shows in said, (task.name, said)
    if task.name.startswith("dismiss"):
        assert night.items()[EVENING] == "dismissed"
    elif task.name.startswith("undo"):
        assert night.items()[EVENING] == "confirmed"
    elif task.name.startswith("stop"):
        assert stopped(night.at.state) is not None
        resume(night.at.state, "looked")


def test_the_table_in_the_docs_has_these_steps() -> None:
    assert table() in (ROOT / "docs/operate.md").read_text("utf-8")
