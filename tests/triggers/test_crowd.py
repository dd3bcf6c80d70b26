"""Many that are due at one moment are recorded together, and none is lost when that fails."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from fleet.errors import TryAgain
from fleet.triggers.clock.schedule import CROWD, Clockwork
from fleet.triggers.model import Firing
from tests.doubles.triggers import FiringRecorder
from tests.triggers.conftest import FakeClock, every, running, turns

pytestmark = pytest.mark.anyio


class Crowd(FiringRecorder):
    """Takes many at once. `trouble` is what the first time brings: an error, or a wait without end."""

    def __init__(self, trouble: str = "") -> None:
        super().__init__()
        self.trouble = trouble
        self.together: list[int] = []

    async def fire_all(self, firings: Sequence[Firing]) -> None:
        self.together.append(len(firings))
        trouble, self.trouble = self.trouble, ""
        if trouble == "error":
            raise TryAgain("the disk is full")
        if trouble == "hang":
            await anyio.sleep_forever()
        for firing in firings:
            await super().fire(firing)

    async def fire(self, firing: Firing) -> bool:
        self.together.append(1)
        return await super().fire(firing)


async def _burst(sink: Crowd, clock: FakeClock, count: int, settled_s: float = 0.0) -> None:
    work = Clockwork(sink, fire_all=sink.fire_all, clock=clock, sink_s=0.02)
    for number in range(count):
        work.plan(f"qa-{number}", [every("1s")])
    async with running(work.run):
        clock.advance(1)
        await work.wake()
        await turns(20)
        await anyio.sleep(settled_s)


async def test_what_is_due_at_one_tick_goes_together_in_portions(clock: FakeClock) -> None:
    sink = Crowd()
    await _burst(sink, clock, 2 * CROWD + 1)
    assert sink.together == [CROWD, CROWD, 1]
    assert len(set(sink.keys)) == 2 * CROWD + 1
    assert (sink.skips, sink.repeats) == ([], [])


@pytest.mark.parametrize("trouble", ["error", "hang"])
async def test_a_crowd_that_cannot_be_recorded_goes_one_by_one(clock: FakeClock, trouble: str) -> None:
    sink = Crowd(trouble)
    await _burst(sink, clock, 5, settled_s=0.1)
    assert sink.together == [5, 1, 1, 1, 1, 1]
    assert [firing.persona for firing in sink.fired] == [f"qa-{number}" for number in range(5)]
    assert (sink.skips, sink.repeats) == ([], [])


async def test_after_trouble_crowds_go_together_again(clock: FakeClock) -> None:
    sink = Crowd("error")
    work = Clockwork(sink, fire_all=sink.fire_all, clock=clock)
    for number in range(4):
        work.plan(f"qa-{number}", [every("1s")])
    async with running(work.run):
        for _ in range(2):
            clock.advance(1)
            await work.wake()
            await turns(20)
    assert sink.together == [4, 1, 1, 1, 1, 4]
    assert len(sink.fired) == 8
