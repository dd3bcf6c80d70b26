"""What a daemon leaves that was not stopped, read from its own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.clock import SystemClock, minute
from fleet.events.daemon_events import DaemonLost, DaemonStarted, DaemonStopped, Feed, QueueResumed
from fleet.service.lost_daemon import in_words, lost_daemon, records_newest_first
from fleet.store.journal import Journal
from fleet.store.rows import NewRun

pytestmark = pytest.mark.anyio
EARLY, LATE = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"


def started(pid: int = 7) -> DaemonStarted:
    return DaemonStarted(at=EARLY, version="1", pid=pid, platform="acme", rung="observe", personas=0)


async def found(state: Path, *events: object, running: int = 0) -> DaemonLost | None:
    feed = Feed(state / "events.jsonl", clock=SystemClock())
    feed.publish(*events)  # type: ignore[arg-type]
    feed.close()
    async with await Journal.open(state / "fleet.db") as journal:
        return await lost_daemon(state, journal, running=running)


async def test_a_daemon_that_was_stopped_or_never_started_is_not_lost(tmp_path: Path) -> None:
    assert await found(tmp_path) is None
    assert await found(tmp_path, QueueResumed()) is None
    assert await found(tmp_path, started(), DaemonStopped(reason="SIGTERM")) is None


async def test_a_daemon_is_lost_at_its_last_whole_event(tmp_path: Path) -> None:
    first = await found(tmp_path, started(), QueueResumed(at=LATE))
    with (tmp_path / "events.jsonl").open("a") as torn:
        torn.write('{"at":"2030-01-01T00:00:00Z","type":"daemon.sto')
    again = await found(tmp_path)
    assert first == again == DaemonLost(last_seen=LATE)
    assert await found(tmp_path, running=7) is None


async def test_a_loss_that_is_recorded_stays_known_until_a_start_is_complete(tmp_path: Path) -> None:
    lost = DaemonLost(at=LATE, last_seen=EARLY, runs=("abcdefgh",))
    known = await found(tmp_path, started(), lost)
    assert known is not None
    assert known.model_copy(update={"event_type": "", "source": "", "correlation_id": ""}) == lost
    assert await found(tmp_path, started(8), DaemonStopped(reason="SIGTERM")) is None
    assert in_words(lost) == f"it died at {minute(EARLY)} UTC with 1 run in flight (abcdefgh)"


async def test_only_runs_without_an_end_that_this_daemon_began_are_named(tmp_path: Path) -> None:
    head = f'{{"type":"header","at":"{LATE}"}}\n'
    lines = {
        "mine": (7, head + '{"type":"tool'),
        "older": (7, head.replace(LATE, "2026-11-20T10:00:00Z")),
        "ended": (7, head + head.replace("header", "footer")),
        "byhand": (8, head),
    }
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        for run, (pid, text) in {**lines, "elsewhere": (7, "")}.items():
            await journal.trigger(
                NewRun(run_id=run, persona="p", key=run, platform="acme", trigger="t", rung="", budget={})
            )
            await journal.claim(run, pid=pid, pid_start=1, daemon="one")
            if text:
                (tmp_path / "runs" / run).mkdir(parents=True)
                (tmp_path / "runs" / run / "trajectory.jsonl").write_text(text)
        await journal.adopt("mine", daemon="two")  # a peer settles it
    assert await found(tmp_path, started()) == DaemonLost(last_seen=LATE, runs=("mine",))


async def test_a_start_that_was_rotated_away_is_still_one(tmp_path: Path) -> None:
    (tmp_path / "events.1.jsonl").write_text("")
    assert await found(tmp_path, QueueResumed(at=LATE)) == DaemonLost(last_seen=LATE)


def test_records_are_read_backwards_over_blocks_and_junk(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = [b'{"type":"t","at":"%d","text":"%s"}' % (n, b"x" * 1000) for n in range(600)]
    junk = [b"\0" * 3_000_000, b"[" * 100_000, b"null", b'{"type":1,"at":2}', b""]
    path.write_bytes(b"\n".join(good[:300] + junk + good[300:]))
    assert [one["at"] for one in records_newest_first(path)] == [str(n) for n in reversed(range(600))]
    path.unlink()
    path.mkdir()
    assert list(records_newest_first(path)) == []
