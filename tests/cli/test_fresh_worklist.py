"""When `fleet items` triages by itself: the log went on, someone decided or looked, something ended."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fleet.app.lock import only_one
from fleet.chain.log.end import LogEnd
from fleet.cli.items import fresh
from fleet.clock import iso
from fleet.config import Platform, parse
from fleet.findings.recurrence import Recurrence, key_of
from fleet.service.listeners import listeners
from fleet.store.journal import Journal
from fleet.store.rows import DecisionRow
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.outputs.files import save
from tests.cli.test_worklist_command import AT, HEADER, ITEMS, own

pytestmark = pytest.mark.anyio

PLATFORM = parse(
    Platform,
    f'name = "devnet"\n[chain]\nrpc = "http://127.0.0.1:9"\nid = 7\ndiamond = "0x{"d1" * 20}"\n[web]\n',
    file="p.toml",
)
END = LogEnd(42, int(datetime.fromisoformat(AT).timestamp()))


def earlier() -> datetime:
    """Earlier today, when it is asked: a suite may begin yesterday."""
    now = datetime.now(UTC)
    return max(now - timedelta(hours=1), now.replace(hour=0, minute=0, second=0, microsecond=0))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    tmp_path.chmod(0o700)
    written(tmp_path)
    return tmp_path


def written(state: Path, header: WorklistHeader = HEADER, at: datetime | None = None) -> None:
    at = at or earlier()
    save(state, ITEMS, header)
    os.utime(state / "worklist.json", (at.timestamp(), at.timestamp()))


async def current(state: Path, monkeypatch: pytest.MonkeyPatch, end: LogEnd = END) -> tuple[bool, int]:
    """Whether the list is current, and how often the log was asked."""
    asked: list[str] = []

    async def ends(profile: Platform, folder: Path) -> LogEnd:
        asked.append(profile.name)
        return end

    monkeypatch.setattr(fresh, "log_end", ends)
    return await fresh._current(state, PLATFORM), len(asked)


async def test_a_list_that_ends_with_the_log_is_current(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await current(state, monkeypatch) == (True, 1)
    assert await current(state, monkeypatch, replace(END, entries=43)) == (False, 1)
    assert await current(state, monkeypatch, replace(END, at=END.at + 1)) == (False, 1)
    assert await current(state, monkeypatch, replace(END, at=2**64 - 1)) == (False, 1)
    (state / "worklist.json").unlink()
    assert await current(state, monkeypatch) == (False, 0)


@pytest.mark.parametrize(("after", "expected"), [(-60, True), (60, False)])
async def test_a_decision_or_a_look_after_it_counts(
    state: Path, monkeypatch: pytest.MonkeyPatch, after: int, expected: bool
) -> None:
    at = iso(earlier() + timedelta(seconds=after))
    async with await Journal.open(state / "fleet.db") as journal:
        decision = DecisionRow(
            item="a" * 12, kind="fixed", reason="r", who="ann", at=at, platform="devnet", name="c" * 12
        )
        await journal.add_decision(decision)
    assert await current(state, monkeypatch) == (expected, 1)
    (state / "fleet.db").unlink()
    async with await Journal.open(state / "fleet.db") as journal:
        await journal.put(key_of("devnet", "a" * 12), Recurrence().clean(at, "r").model_dump_json())
        await journal.put(
            key_of("elsewhere", "a" * 12), Recurrence().clean(iso(earlier()), "r").model_dump_json()
        )
    assert await current(state, monkeypatch) == (expected, 1)


async def test_the_end_of_a_snooze_makes_it_old(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for until, expected in ((iso(earlier()), False), ("2999-01-01T00:00:00Z", True)):
        snoozed = own(0, "later", fingerprint="e" * 12, state="snoozed", until=until)
        save(state, (*ITEMS, snoozed), HEADER)
        os.utime(state / "worklist.json", (earlier().timestamp(),) * 2)
        assert await current(state, monkeypatch) == (expected, 1)


async def test_a_new_day_makes_it_old(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for at, expected in ((begun, True), (begun - timedelta(seconds=1), False)):
        written(state, at=at)
        assert await current(state, monkeypatch) == (expected, 1)


async def test_what_a_running_daemon_has_just_written_is_not_compared(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(state, at=datetime.now(UTC))
    assert await current(state, monkeypatch) == (True, 1)
    with only_one(state):
        (socket,) = listeners(state, None)
        with socket:
            assert await current(state, monkeypatch) == (True, 0)
            written(state)
            assert await current(state, monkeypatch) == (True, 1)
