"""The daemon's own file: whole lines, and never more than two files of the largest size."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fleet.clock import SystemClock
from fleet.events.chain import unlinked
from fleet.events.daemon_events import DaemonEvent, DaemonStopped, FaultMet, Feed, QueueResumed
from tests.feed import read_feed


def test_a_file_that_is_too_large_is_put_aside_while_it_is_written(tmp_path: Path) -> None:
    path, seen = tmp_path / "events.jsonl", []
    feed = Feed(path, clock=SystemClock(), readers=[lambda event: seen.append(event.type)], largest=1000)
    for number in range(100):
        feed.publish(DaemonStopped(reason=f"number {number}"))
    feed.publish(QueueResumed())
    feed.close()
    names = ["events.1.jsonl", "events.head", "events.jsonl"]
    assert sorted(one.name for one in tmp_path.iterdir()) == names
    assert all(one.stat().st_size < 1200 for one in tmp_path.iterdir())
    assert path.stat().st_mode & 0o777 == 0o600
    kept = [event for name in ("events.1.jsonl", "events.jsonl") for event in read_feed(tmp_path / name)]
    numbers = [event.reason for event in kept if isinstance(event, DaemonStopped)]
    assert numbers == [f"number {number}" for number in range(100 - len(numbers), 100)]  # no gap at the seam
    assert isinstance(kept[-1], QueueResumed)
    assert len(seen) == 101


def test_an_internal_error_has_its_code_the_hash_of_its_traceback_and_what_is_done(tmp_path: Path) -> None:
    seen = list[DaemonEvent]()
    feed = Feed(tmp_path / "events.jsonl", clock=SystemClock(), readers=[seen.append])
    for number in (1, 0):
        try:
            number // 0 if number else int("x")
        except (ZeroDivisionError, ValueError) as error:
            feed.fault("run abc of qa-x", error, "the run is settled")
    feed.close()
    first, second = seen
    assert isinstance(first, FaultMet)
    assert (first.error_code, first.error_message) == (
        "ZeroDivisionError",
        "ZeroDivisionError: integer division or modulo by zero",
    )
    assert (len(first.stack_trace_hash), first.recovery_action) == (64, "the run is settled")
    assert first.stack_trace_hash != second.stack_trace_hash  # type: ignore[union-attr]
    assert (first.source, first.event_type, first.correlation_id[:7]) == ("daemon", "error", "daemon ")


def test_a_feed_that_cannot_be_put_aside_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    (tmp_path / "events.1.jsonl").mkdir()  # nothing can take its place
    feed = Feed(path, clock=SystemClock(), largest=100)
    for _ in range(10):
        feed.publish(QueueResumed())
    feed.close()
    assert len(list(read_feed(path))) == 10


def test_a_disk_that_refuses_costs_the_line_but_neither_half_of_the_next_nor_the_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "events.jsonl", []
    feed = Feed(path, clock=SystemClock(), readers=[lambda event: seen.append(event.type)])
    feed.publish(QueueResumed())
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 20:
            return real(descriptor, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        feed.publish(DaemonStopped(reason="x" * 80))
    feed.publish(DaemonStopped(reason="room again"))
    feed.close()
    assert [event.type for event in read_feed(path)] == ["queue.resumed", "daemon.stopped"]
    assert path.read_text().count("\n") == 2
    assert seen == ["queue.resumed", "daemon.stopped", "daemon.stopped"]


def test_half_a_line_of_a_killed_daemon_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"at":"2026')
    feed = Feed(path, clock=SystemClock())
    feed.publish(QueueResumed(at="2026-11-27T09:00:00Z"))
    feed.close()
    torn, whole = path.read_bytes().splitlines()
    assert torn == b'{"at":"2026'
    assert unlinked(whole).endswith(b'"at":"2026-11-27T09:00:00Z","type":"queue.resumed","who":"","why":""}')


def test_every_event_has_a_time_and_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    feed = Feed(path, clock=SystemClock())
    before = feed.now()
    feed.publish(QueueResumed(), QueueResumed(at="2001-01-01T00:00:00Z"))
    feed.close()
    first, second = [event.at for event in read_feed(path)]
    assert before <= first <= feed.now()
    assert second == "2001-01-01T00:00:00Z"
