"""A fleet after a night, whose texts are a stranger's worst, behind its pages."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from fleet.chain.node.codec import Entry
from fleet.clock import SystemClock
from fleet.events.daemon_events import TriggerFired
from fleet.events.model import FindingRaised, Header, ToolRequested
from fleet.files import SHIPPED
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.personas.load import LoadedPersona, load_all
from fleet.store.journal import Journal
from fleet.store.rows import HOLD, FindingRow, SampleRow
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import LogPosition, WorklistHeader
from fleet.triage.outputs.files import save
from fleet.triage.run import item_row
from fleet.web.session import TOKEN
from fleet.web.site import WebPages
from sandbox.tools import TOOLS
from tests.cli.test_status import ITEMS, night
from tests.cli.test_worklist_command import own
from tests.triage import hostile
from tests.triage.outputs.test_formats import item

AT = "2026-11-21T04:10:00Z"
FIRST, HELD, MERGED = "5ec0de" * 2, "ab" * 6, "de" * 6
TEXTS = (*hostile.MARKUP.values(), *hostile.ESCAPES.values())
URL = "http://127.0.0.1:8080"
FACTS: Mapping[str, Any] = {
    "loaded": [{"name": "qa-fuzz"}],
    "next": {"qa-ux": "2036-11-21T05:00:00Z"},
    "refused": {"qa-x": TEXTS[0]},
}


async def hostile_words(folder: Path, items: Sequence[WorklistItem]) -> None:
    """Findings, runs and log entries with the worst of texts."""
    async with await Journal.open(folder / "fleet.db") as journal:
        await journal.put_items("devnet", [item_row(one) for one in items])
        for number, text in enumerate(TEXTS):
            row = FindingRow(run_id="run0", fingerprint=f"{number:012x}", title=text, severity=text[:9])
            await journal.add_finding(row)
        held = FindingRow(
            run_id="run0",
            fingerprint=HELD,
            state="confirmed",
            severity="high",
            surface="ux",
            title="kept back",
            data={HOLD: True},
            at="2036-01-01T00:00:00Z",
        )
        await journal.add_finding(held)
        entries = [
            Entry(sender=f"0x{number:040x}", timestamp=number, text=text) for number, text in enumerate(TEXTS)
        ]
        await journal.mirror(0, 0, entries)
        for ms in (40.0, 55.0, 120.0):
            for number, text in enumerate(TEXTS):
                name = f"latency of {text}"
                await journal.keep_sample(
                    "devnet", SampleRow(measure=name, own=(ms,), control=(number + 1.0,))
                )
            await journal.keep_sample("devnet", SampleRow(measure="gas_used of publish #0", own=(ms * 1e4,)))


@dataclass
class Served:
    """The application, and what it shows."""

    state: Path
    pages: WebPages
    app: Starlette

    async def ask(
        self, path: str, method: str = "GET", *, form: Mapping[str, str] | None = None, **headers: str
    ) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, data=form, headers=named)

    async def unlocked(self) -> tuple[str, str]:
        """The cookie of a session, and the word of its forms."""
        await self.ask("/unlock")
        token = (self.state / TOKEN).read_text().strip()
        answer = await self.ask("/unlock", "POST", form={"token": token}, origin=URL)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        page = (await self.ask("/", cookie=cookie)).text
        return cookie, page.partition('name="csrf" value="')[2].partition('"')[0]


@pytest.fixture(scope="session")
def after_a_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: each test has a copy of it."""
    state = tmp_path_factory.mktemp("night") / "state"
    state.mkdir(mode=0o700)
    worst = [item(90 + number, text, surface=text[:40]) for number, text in enumerate(TEXTS)]
    first = own(1, "Secret is public: GET /client.js shows a key", fingerprint=FIRST, severity="critical")
    merged = own(2, "two in one", fingerprint=MERGED, names=(MERGED, "df" * 6))
    header = WorklistHeader(platform="devnet", as_of=LogPosition(0, 42, AT))
    save(state, (first, merged, *ITEMS, *worst), header)
    write_dial(state, Rung.EXERCISE, "the night before the release", "ann@desk", SystemClock())
    asyncio.run(night(state))  # not anyio's: a session's async fixture may have left its mark
    asyncio.run(hostile_words(state, (first, merged, *ITEMS)))
    return state


@cache
def personas() -> Mapping[str, LoadedPersona]:
    folder = SHIPPED / "personas"
    good, _ = load_all(folder, tools=TOOLS, bad_args=lambda *_: None, bad_expectation=lambda *_: ())
    return {one.persona.name: one for one in good}


@pytest.fixture
def served(after_a_night: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    state = tmp_path / "state"
    shutil.copytree(after_a_night, state)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(state))
    pages = WebPages(state, ("qa.example.org",))
    pages.daemon(TriggerFired(at=AT, persona="qa-smoke", key="k", why=TEXTS[1], run="live0001"))
    brief = {"persona_sha256": "0", "driver": "playbook", "platform": "devnet", "chain_id": 1}
    rights: dict[str, Any] = {"rung": "observe", "jail": "bwrap", "budget": {}, "trigger": "every 1h"}
    pages.run(Header(run="live0001", at=AT, persona="qa-smoke", **brief, **rights))
    pages.run(ToolRequested(run="live0001", at=AT, call=1, tool="qa_fetch", args={"url": TEXTS[2]}))
    pages.run(FindingRaised(run="live0001", at=AT, fingerprint="1", probe="p", title=TEXTS[3]))

    async def facts() -> Mapping[str, Any]:
        return FACTS

    yield Served(state, pages, Starlette(routes=pages.routes(facts, personas())))
    asyncio.run(pages.aclose())  # anyio refuses where another test left its context
