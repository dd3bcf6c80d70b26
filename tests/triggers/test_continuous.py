"""Back-off: after the end of a run, doubling while nothing is found, never beyond its cap."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.clock import SystemClock
from fleet.errors import UsageError
from fleet.personas.model import Trigger
from fleet.triggers.clock.continuous import AGAIN_S, BLIND_S, Continuous, Pace, Rounds
from tests.doubles.triggers import FiringRecorder
from tests.triggers.conftest import START, FakeClock, Refusing, running, until

TRIGGER = Trigger(continuous="30s", backoff="2h")


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.lists(st.booleans(), max_size=60))
def test_the_pause_doubles_to_its_cap_and_resets_on_a_finding(low: int, more: int, found: list[bool]) -> None:
    pace, rounds, pauses = Pace(low, low + more), Rounds(), [float(low)]
    for each in found:
        rounds = rounds.after(found=each, well=True, ended=START)
        pauses.append(pace.pause(rounds.quiet))
    assert rounds.count == len(found)
    for before, pause, each in zip(pauses, pauses[1:], found, strict=False):
        assert pause == (low if each else min(2 * before, low + more))


def test_a_run_that_did_not_end_well_is_not_quiet() -> None:
    rounds = Rounds(3, 2).after(found=False, well=False, ended=START)
    assert (rounds.count, rounds.quiet) == (4, 2)


@given(st.integers(0, 2000), st.integers(-(10**9), 10**9))
def test_a_wait_is_never_longer_than_the_pause(quiet: int, ago: int) -> None:
    pace, ended = Pace.of(TRIGGER), START - timedelta(seconds=ago)
    wait = pace.wait(Rounds(7, quiet, ended), START)
    pause = pace.pause(quiet)
    assert wait == max(0, pause - ago) if ago >= 0 else wait == pause


def test_without_a_backoff_it_does_not_back_off() -> None:
    assert Pace.of(Trigger(continuous="5m")) == Pace(300, 300)


@pytest.mark.anyio
async def test_it_starts_again_after_the_run_ended_and_not_before(
    clock: FakeClock, sink: FiringRecorder
) -> None:
    loop = Continuous(sink, clock=clock)
    loop.plan("qa-a", TRIGGER, Rounds())
    assert await loop.fire_due() == 30
    clock.advance(30)
    await loop.fire_due()
    assert sink.keys == ["qa-a@round:0"]
    clock.advance(3600)
    await loop.fire_due()
    assert len(sink.fired) == 1  # it is still running
    for quiet, found in enumerate((False, False, True)):
        loop.ended("qa-a", found=found)
        pause = 30 if found else 60 * 2**quiet
        clock.advance(pause - 1)
        assert await loop.fire_due() == 1
        clock.advance(1)
        await loop.fire_due()
        assert sink.keys[-1] == f"qa-a@round:{quiet + 1}"
    assert [firing.why for firing in sink.fired[:2]] == ["continuous, pause 30 s", "continuous, pause 60 s"]
    assert sink.repeats == []


@pytest.mark.anyio
async def test_a_firing_that_nobody_heard_of_is_offered_again_under_its_key(
    clock: FakeClock, sink: FiringRecorder
) -> None:
    loop = Continuous(sink, clock=clock)
    loop.plan("qa-a", Trigger(continuous="1s"), Rounds(4, 0, START))
    for _ in range(2):
        clock.advance(AGAIN_S)
        await loop.fire_due()
    assert [firing.key for firing in sink.repeats] == sink.keys == ["qa-a@round:4"]


@pytest.mark.anyio
async def test_a_restart_waits_for_what_is_left_of_the_pause(clock: FakeClock, sink: FiringRecorder) -> None:
    loop = Continuous(sink, clock=clock)
    loop.plan("qa-a", TRIGGER, Rounds(9, 2, START - timedelta(seconds=100)))
    loop.plan("qa-b", TRIGGER, Rounds(1, 0, START - timedelta(days=1)))
    assert loop.upcoming() == {"qa-a": START + timedelta(seconds=20), "qa-b": START}
    assert await loop.fire_due() == 20
    assert sink.keys == ["qa-b@round:1"]


@pytest.mark.anyio
async def test_plans_change_without_losing_count(clock: FakeClock, sink: FiringRecorder) -> None:
    loop = Continuous(sink, clock=clock)
    loop.plan("qa-a", TRIGGER, Rounds(3))
    clock.advance(20)
    loop.plan("qa-a", TRIGGER, Rounds())  # the edit of a file that keeps its pace
    assert await loop.fire_due() == 10
    loop.plan("qa-a", Trigger(continuous="5s"), Rounds())
    clock.advance(5)
    await loop.fire_due()
    assert sink.keys == ["qa-a@round:3"]
    loop.drop("qa-a")
    loop.ended("qa-a", found=True)
    assert loop.upcoming() == {}


@pytest.mark.anyio
async def test_a_sink_that_raises_is_tried_again_and_disturbs_no_other(clock: FakeClock) -> None:
    sink = Refusing("qa-a")
    loop = Continuous(sink, clock=clock)
    for persona in ("qa-a", "qa-b"):
        loop.plan(persona, TRIGGER, Rounds())
    clock.advance(30)
    await loop.fire_due()
    assert sink.keys == ["qa-b@round:0"]
    assert sink.skips[0].key == "qa-a@round:0"
    sink.refused.clear()
    clock.advance(30)
    await loop.fire_due()
    assert sink.keys == ["qa-b@round:0", "qa-a@round:0"]


@pytest.mark.anyio
async def test_the_loop_wakes_for_plans_and_ends(sink: FiringRecorder) -> None:
    loop = Continuous(sink, clock=SystemClock())
    async with running(loop.run):
        with pytest.raises(UsageError, match="already running"):
            await loop.run()
        loop.plan(
            "qa-a", Trigger(continuous="1s"), Rounds(0, 0, SystemClock().now() - timedelta(seconds=0.9))
        )
        await until(lambda: sink.fired)
    assert sink.keys == ["qa-a@round:0"]


@pytest.mark.anyio
async def test_what_the_journal_counts_is_what_it_goes_on_from(
    clock: FakeClock, sink: FiringRecorder
) -> None:
    """A round that another daemon ended moves this one's next start; one that is known moves nothing."""
    loop = Continuous(sink, clock=clock)
    loop.plan("qa-a", TRIGGER, Rounds(3, 0, START))
    clock.advance(20)
    loop.know("qa-a", Rounds(3, 0, START))
    assert await loop.fire_due() == 10
    loop.know("qa-a", Rounds(4, 1, clock.now()))
    assert await loop.fire_due() == 60
    clock.advance(60)
    await loop.fire_due()
    loop.know("qa-a", Rounds(4, 1, clock.now()))  # fired, and not ended yet: no second start
    assert await loop.fire_due() > 60
    loop.know("qa-b", Rounds(1))  # dropped meanwhile
    assert sink.keys == ["qa-a@round:4"]
    assert list(loop.upcoming()) == ["qa-a"]


@pytest.mark.anyio
@pytest.mark.parametrize("backoff", ["2h", None])
async def test_runs_that_look_at_nothing_come_ever_less_often_and_that_is_told_once(
    clock: FakeClock, sink: FiringRecorder, backoff: str | None
) -> None:
    """An hour of them was 92 starts: each ended blind, which is not quiet."""
    loop = Continuous(sink, clock=clock)
    loop.plan("qa-a", Trigger(continuous="30s", backoff=backoff), Rounds())
    clock.advance(30)
    starts = []
    for _ in range(12):
        await loop.fire_due()
        starts.append(len(sink.fired))
        loop.ended("qa-a", found=False, well=False, blind="0 of 9 probes looked at")
        clock.advance((loop.upcoming()["qa-a"] - clock.now()).total_seconds())
    assert starts == list(range(1, 13))
    assert [one.why.removeprefix("continuous, pause ") for one in sink.fired[:3]] == ["30 s", "60 s", "120 s"]
    gaps = [(after.due - before.due).total_seconds() for before, after in pairwise(sink.fired)]
    assert gaps == [min(60 * 2**n, BLIND_S) for n in range(11)]
    assert [(one.persona, one.key, one.reason) for one in sink.skips] == [
        (
            "qa-a",
            "qa-a@blind",
            "its runs look at nothing (0 of 9 probes looked at), so they start less often, down to every 2 h,"
            " until a part of the platform changes: fleet check platform says why",
        )
    ]
    assert loop.blind() == ["qa-a"]
    loop.ended("qa-a", found=False)  # it looked at something
    await loop.fire_due()
    assert loop.blind() == []
    assert loop.upcoming()["qa-a"] == clock.now() + timedelta(seconds=60 if backoff else 30)
    loop.ended("qa-a", found=False, well=False, blind="nothing")
    await loop.fire_due()
    assert len(sink.skips) == 2
