"""A log in a file that changed starts what waits for it, once."""

from __future__ import annotations

import pytest

from fleet.errors import Unreachable
from fleet.triggers.log_file import LogFileWatch
from tests.doubles.triggers import FiringRecorder, MemoryFacts
from tests.triggers.conftest import FakeClock

pytestmark = pytest.mark.anyio


async def test_each_change_fires_once_also_one_while_the_daemon_was_down() -> None:
    entries, sink, facts = [3], FiringRecorder(), MemoryFacts()

    async def count() -> int:
        if entries[0] < 0:
            raise Unreachable("line 2 is damaged")
        return entries[0]

    def watch() -> LogFileWatch:
        return LogFileWatch("file:a", count, facts, sink, lambda _: ("qa-a",), clock=FakeClock())

    one = watch()
    await one.turn()
    await one.turn()
    assert sink.keys == []  # the first sight
    entries[0] = 5
    await one.turn()
    await one.turn()
    entries[0] = 0  # cleared
    await watch().turn()
    entries[0] = 5
    await watch().turn()
    assert sink.keys == ["qa-a@log-changed:5:2", "qa-a@log-changed:0:3", "qa-a@log-changed:5:4"]
    entries[0] = -1
    await watch().turn()
    assert [skip.reason for skip in sink.skips] == ["could not look: Unreachable: line 2 is damaged"]
