"""The log and what is published on it are enough: without the database the same files, byte for byte."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.app.persona_sets import roster
from fleet.chain.log.file_log import FileLog
from fleet.clock import iso
from fleet.config import Platform
from fleet.findings.audit import AuditDay, AuditResult
from fleet.findings.audit import key_of as audit_key
from fleet.findings.recurrence import Recurrence, key_of
from fleet.personas.load import LoadedPersona
from fleet.store.journal import Journal
from fleet.store.rows import QUEUED, DecisionRow
from fleet.triage.items.decisions import named
from fleet.triage.outputs.files import written
from fleet.triage.run import FILES
from fleet.triage.triage_pass import TRIAGE, earlier, pass_over, rebuild
from tests.triage.test_triage_run import FakeClock
from tests.triage.triage_log import FLEET, HUMAN, finding

pytestmark = pytest.mark.anyio
PLATFORM = "p"


@dataclass
class Here:
    """A world with a log in a file and a database that can be deleted; `sender` writes the next entry."""

    state: Path
    journal: Journal
    clock: FakeClock = field(default_factory=FakeClock)
    sender: str = FLEET

    def __post_init__(self) -> None:
        signer = SimpleNamespace(admit_entry=self._admit)
        self.file = FileLog(self.state / "log.jsonl", cast(Any, signer), clock=self.clock)
        self.chain: Any = SimpleNamespace(log=self.file, identity=FLEET, signer=None)
        self.platform = Platform(name=PLATFORM, log="file:own")
        often = SimpleNamespace(period=lambda: timedelta(minutes=1))
        store = SimpleNamespace(stalled_s=120.0)
        self.config: Any = SimpleNamespace(trusted=(), triage=often, model=None, store=store)
        self.personas: Mapping[str, LoadedPersona] = roster()[0]

    async def _admit(self, text: str, *, run: str, charge: str) -> str:
        return self.sender

    async def post(self, text: str, sender: str = FLEET) -> None:
        self.clock.at += timedelta(minutes=1)
        self.sender = sender
        await self.file.post(text)
        self.sender = FLEET

    async def go(self, *, post: bool = True, ask: bool = True) -> list[tuple[str, str]]:
        """A pass; the fingerprint and state of each item."""
        self.clock.at += timedelta(minutes=1)
        done = await pass_over(self, self.personas[TRIAGE], post=post, ask=ask)
        return [(item.title, item.state) for item in (*done.items, *done.closed)]

    async def decide(self, item: str, **more: Any) -> DecisionRow:
        self.clock.at += timedelta(minutes=1)
        values: dict[str, Any] = {"kind": "dismiss", "reason": "x", "who": "a", "entry": QUEUED} | more
        row = named(DecisionRow(item=item, at=iso(self.clock.at), platform=PLATFORM, **values))
        assert await self.journal.add_decision(row)
        return row

    async def saw(self, item: str, figures: Recurrence) -> None:
        key = key_of(PLATFORM, item)
        assert await self.journal.swap(key, await self.journal.get(key), figures.model_dump_json())

    def files(self) -> list[bytes]:
        return [(self.state / name).read_bytes() for name in FILES]

    async def texts(self) -> list[str]:
        return [entry.text for entry in await self.file.range(0, 1_000)]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Here]:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        yield Here(tmp_path, journal)


A, B, C, D = ("a" * 12, "b" * 12, "c" * 12, "d" * 12)


@pytest.mark.parametrize("back", [{"seen": C}, {"seen": "3" * 12, "former": [C]}], ids=["version 2", "3"])
async def test_without_the_database_the_files_are_the_same(
    here: Here, tmp_path: Path, back: dict[str, Any]
) -> None:
    """Also where what was fixed comes back under a fingerprint of a newer version."""
    for name in (A, B, C, D):
        await here.post(finding(name, title=f"title {name}", seen=name, run="r1"))
    await here.post("the button does nothing", HUMAN)
    await here.go()
    seen, clean = iso(here.clock.at - timedelta(minutes=5)), iso(here.clock.at + timedelta(minutes=1))
    await here.saw(A, Recurrence(runs=1, last=seen, run="r1", clean_at=clean, clean_run="r2"))
    await here.saw(D, Recurrence(runs=7, days=("2026-06-12",), last=clean, run="r3"))
    await here.decide(B)
    await here.decide(C, kind="fixed")
    await here.go()
    await here.post(finding(C, title=f"title {C}", run="r4", **back))
    await here.go()
    states = dict(await here.go())
    assert [states[f"title {name}"] for name in (A, B, C, D)] == [
        "verified-fixed",
        "dismissed",
        "regression",
        "confirmed",
    ]
    assert any("\nseen: " in text for text in await here.texts())
    before, entries = here.files(), await here.texts()
    for name in FILES:
        (tmp_path / name).unlink()
    async with await Journal.open(tmp_path / "other.db") as journal:
        again = Here(tmp_path, journal, here.clock)
        await rebuild(again, again.personas[TRIAGE])
        assert again.files() == before
        await rebuild(again, again.personas[TRIAGE])
        assert again.files() == before
    await rebuild(here, here.personas[TRIAGE])
    assert here.files() == before
    assert await here.texts() == entries


async def test_a_pass_has_read_what_it_posts(here: Here, tmp_path: Path) -> None:
    await here.post(finding(A, title="one", seen=A))
    await here.go()
    document = written(tmp_path)
    assert document is not None
    assert document.as_of.entries == await here.file.count() == 2


async def test_a_pass_posts_what_waits_for_it_once(here: Here) -> None:
    await here.post(finding(A, title="one", seen=A))
    await here.go()
    row = await here.decide(A)
    await here.go(post=False)
    assert await here.journal.decisions(PLATFORM) == [row]
    await here.go()
    (posted,) = await here.journal.decisions(PLATFORM)
    found = [n for n, text in enumerate(await here.texts()) if "\ndismiss: one\n" in text]
    assert found == [posted.entry]
    await here.journal.put("x", "y")
    await here.go()
    assert len([text for text in await here.texts() if "\ndismiss: " in text]) == 1


async def test_what_a_killed_process_posted_is_not_posted_again(here: Here, tmp_path: Path) -> None:
    await here.post(finding(A, title="one", seen=A))
    await here.decide(A)
    await here.go()
    (posted,) = await here.journal.decisions(PLATFORM)
    async with await Journal.open(tmp_path / "other.db") as journal:
        again = Here(tmp_path, journal, here.clock)
        assert await journal.add_decision(replace(posted, entry=QUEUED))
        await again.go()
        assert await journal.decisions(PLATFORM) == [posted]
    assert len([text for text in await here.texts() if "\ndismiss: " in text]) == 1


async def test_a_decision_shows_at_once_without_the_log(here: Here) -> None:
    await here.post(finding(A, title="one", seen=A))
    assert await here.go() == [("one", "confirmed")]
    await here.decide(A, entry=-1)
    await here.post(finding(B, title="two", seen=B))
    here.chain.log = None  # asking it would fail
    assert await here.go(post=False, ask=False) == [("one", "dismissed")]
    assert b'"state": "dismissed"' in here.files()[0]


async def test_items_of_an_earlier_epoch_are_still_told(here: Here, tmp_path: Path) -> None:
    await here.post(finding(A, title="old", seen=A))
    await here.go()
    assert await earlier(here) == ()
    (tmp_path / "log.jsonl").unlink()
    await here.post(finding(B, title="new", seen=B))
    await here.go()
    told = [(one.title, one.rank, one.epoch, one.state) for one in await earlier(here)]
    assert told == [("old", 0, 0, "confirmed")]
    assert b'"title": "old"' not in here.files()[0]


async def test_the_list_names_dismissed_items_that_the_audit_found(here: Here) -> None:
    for name in (A, B):
        await here.post(finding(name, title=f"title {name}", seen=name, run="r1"))
    await here.go()
    at = iso(here.clock.at)
    ones = [
        AuditResult(item=name, state=state, severity="low", run="r2", at=at, verdict="overturned")
        for name, state in ((A, "dismissed"), (B, "confirmed"))
    ]
    await here.journal.put(audit_key(PLATFORM, at[:10]), AuditDay(results=tuple(ones)).model_dump_json())
    await here.decide(A, entry=-1)
    await here.go()
    assert json.loads(here.files()[0])["audit"] == {"drawn": 2, "overturned": 2, "overturned_items": [A]}
    await here.decide(A, kind="reopen", entry=-1)
    await here.go()
    assert json.loads(here.files()[0])["audit"] == {"drawn": 2, "overturned": 2, "overturned_items": []}
