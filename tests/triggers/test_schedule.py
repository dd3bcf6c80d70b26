"""The real scheduler on a clock that the test sets: rows 1, 2, 5, 6 and 7, hot plans, a clock that is set."""

from __future__ import annotations

import time
from datetime import timedelta

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.errors import UsageError
from fleet.personas.model import Trigger
from fleet.triggers.clock.schedule import Clockwork
from fleet.triggers.clock.ticks import Every
from fleet.triggers.model import EVERYONE, Firing, Skip
from tests.doubles.triggers import FiringRecorder
from tests.triggers.conftest import (
    START,
    FakeClock,
    Refusing,
    Ticking,
    every,
    running,
    ticks_of,
    turns,
    until,
)

pytestmark = pytest.mark.anyio

HALF = timedelta(seconds=1800)


def own_tick(persona: str, period: int = 1800) -> float:
    """Seconds from START to a tick of the persona."""
    return (Every.of(period, persona).after(START) - START).total_seconds()


async def test_an_interval_fires_after_one_full_period_and_then_each(ticking: Ticking) -> None:
    ticking.clock.advance(own_tick("qa-a"))
    start = ticking.clock.now()
    ticking.work.plan("qa-a", [every("1800s")])
    assert await ticking.pass_time(0) == []
    assert await ticking.pass_time(1799) == []
    assert await ticking.pass_time(1) == [f"qa-a@{start + HALF:%Y-%m-%dT%H:%M:%SZ}"]
    assert await ticking.pass_time(1) == []
    assert await ticking.pass_time(1799) == [f"qa-a@{start + 2 * HALF:%Y-%m-%dT%H:%M:%SZ}"]
    assert ticks_of(ticking.sink, "qa-a") == [start + HALF, start + 2 * HALF]
    assert ticking.sink.fired[0].why == "every 1800s"
    assert ticking.sink.skips == []


async def test_after_a_stall_of_three_periods_one_run_starts_and_a_skip_names_the_others(
    ticking: Ticking,
) -> None:
    ticking.clock.advance(own_tick("qa-a"))
    start = ticking.clock.now()
    ticking.work.plan("qa-a", [every("30m")])
    await ticking.pass_time(3 * 1800 + 7)
    assert ticks_of(ticking.sink, "qa-a") == [start + 3 * HALF]
    missed = [f"{start + number * HALF:%Y-%m-%dT%H:%M:%SZ}" for number in (1, 2)]
    reason = (
        f"missed {', '.join(missed)}: the clock or the machine stood still; "
        f"only {start + 3 * HALF:%Y-%m-%dT%H:%M:%SZ} runs"
    )
    assert ticking.sink.skips == [Skip("qa-a", f"qa-a@{missed[0]}", reason)]
    assert len(await ticking.pass_time(1800)) == 1
    assert len(ticking.sink.skips) == 1


async def test_ten_lost_years_of_seconds_are_one_run(ticking: Ticking) -> None:
    ticking.work.plan("qa-a", [every("1s"), Trigger(cron="* * * * *")])
    started = time.perf_counter()
    keys = await ticking.pass_time(10 * 365 * 86_400)
    assert time.perf_counter() - started < 1.0
    assert keys[0] == "qa-a@2036-11-18T12:00:00Z"
    assert [repeat.key for repeat in ticking.sink.repeats] == keys  # the minute's tick is the same
    assert [skip.key for skip in ticking.sink.skips] == [
        "qa-a@2026-11-21T12:00:01Z",
        "qa-a@2026-11-21T12:01:00Z",
    ]


async def test_cron_fires_at_its_minute(ticking: Ticking) -> None:
    ticking.work.plan("qa-a", [Trigger(cron="30  12 * * sat")])
    assert await ticking.pass_time(1799) == []
    assert await ticking.pass_time(1) == ["qa-a@2026-11-21T12:30:00Z"]
    assert ticking.sink.fired[0].why == "cron 30 12 * * sat"
    assert await ticking.pass_time(7 * 86_400) == ["qa-a@2026-11-28T12:30:00Z"]


async def test_two_schedulers_write_the_same_keys(clock: FakeClock) -> None:
    first, second = FiringRecorder(), FiringRecorder()
    works = [Clockwork(first, clock=clock), Clockwork(second, clock=clock)]
    personas = [f"qa-{number}" for number in range(20)]
    async with running(works[0].run):
        for persona in personas:
            works[0].plan(persona, [every("10m")])
        clock.advance(321.5)
        async with running(works[1].run):
            for persona in reversed(personas):
                works[1].plan(persona, [every("10m")])
            for _ in range(60):
                clock.advance(61)
                for work in works:
                    await work.wake()
                await turns(60)
    assert set(second.keys) <= set(first.keys)
    assert len(set(first.keys)) == len(first.keys)
    assert len(second.keys) > 80


async def test_plans_change_while_it_runs_and_others_are_not_disturbed(ticking: Ticking) -> None:
    work = ticking.work
    for persona in ("qa-a", "qa-b", "qa-c"):
        work.plan(persona, [every("10s")])
    before = work.upcoming()
    await ticking.pass_time(9)
    work.plan("qa-a", [every("10s"), every("1h")])  # the edit of a file that keeps its interval
    work.plan("qa-b", [every("20s")])
    work.drop("qa-c")
    work.drop("qa-unknown")
    assert work.upcoming()["qa-a"] == before["qa-a"]
    assert work.upcoming()["qa-b"] >= ticking.clock.now() + timedelta(seconds=20)
    await ticking.pass_time(11)
    assert [firing.persona for firing in ticking.sink.fired] == ["qa-a"]
    work.plan("qa-c", [every("10s")])
    await ticking.pass_time(20)
    assert {firing.persona for firing in ticking.sink.fired[1:]} == {"qa-a", "qa-b", "qa-c"}


async def test_a_restart_goes_on_where_the_journal_stands(clock: FakeClock, sink: FiringRecorder) -> None:
    daily = Every.of(86_400, "qa-a")
    work = Clockwork(sink, clock=clock)
    work.plan("qa-a", [every("24h")], since=daily.latest(START))
    assert work.upcoming() == {"qa-a": daily.after(START)}
    work.plan("qa-b", [every("24h")], since=START + timedelta(days=4000))  # the clock had been wrong
    assert work.upcoming()["qa-b"] < START + timedelta(days=2)
    last = daily.latest(START) - timedelta(days=3)
    work.drop("qa-a")
    work.plan("qa-a", [every("24h")], since=last)
    async with running(work.run):
        await turns()
    assert ticks_of(sink, "qa-a") == [daily.latest(START)]
    assert sink.skips[0].key == f"qa-a@{last + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"


async def test_a_clock_set_back_fires_no_tick_twice(ticking: Ticking) -> None:
    ticking.work.plan("qa-a", [every("1m")])
    for _ in range(130):
        await ticking.pass_time(60)
    fired = len(ticking.sink.fired)
    ticking.clock.step(-3600)
    assert await ticking.look() == []
    assert [skip.persona for skip in ticking.sink.skips] == [EVERYONE]
    assert "set by -3600 s" in ticking.sink.skips[0].reason
    for _ in range(58):
        assert await ticking.pass_time(60) == []
    for _ in range(3):
        await ticking.pass_time(60)
    assert len(ticking.sink.fired) > fired
    assert ticking.sink.repeats == []


async def test_a_clock_that_was_years_ahead_does_not_silence_a_persona(ticking: Ticking) -> None:
    ticking.clock.step(10 * 365 * 86_400)
    ticking.work.plan("qa-a", [every("1m")])
    await ticking.pass_time(600)
    ticking.clock.step(-10 * 365 * 86_400)
    await ticking.look()
    assert len(await ticking.pass_time(60)) == 1
    assert ticking.sink.fired[-1].due.year == 2026


@pytest.mark.parametrize("step", [86_400, 10 * 365 * 86_400])
async def test_a_clock_that_was_ahead_between_two_looks_silences_nobody(ticking: Ticking, step: int) -> None:
    """Somebody drops a persona in just then, so that everything due by the wrong clock fires."""
    ticking.work.plan("qa-a", [every("1m")])
    await ticking.pass_time(120)
    ticking.clock.step(step)
    ticking.work.plan("qa-b", [every("1m")])
    await turns()
    assert ticking.sink.fired[-1].due.timestamp() > ticking.clock.now().timestamp() - 61  # it was believed
    ticking.clock.step(-step)
    assert await ticking.look() == []
    assert {key.partition("@")[0] for key in await ticking.pass_time(60)} >= {"qa-a"}
    assert {key.partition("@")[0] for key in await ticking.pass_time(60)} == {"qa-a", "qa-b"}
    assert [skip.reason.split()[6] for skip in ticking.sink.skips if skip.persona == EVERYONE] == [
        f"+{step}",
        f"-{step}",
    ]
    assert ticking.sink.repeats == []


async def test_what_is_planned_by_a_clock_that_is_ahead_is_planned_anew(ticking: Ticking) -> None:
    ticking.clock.step(86_400)
    ticking.work.plan("qa-a", [every("1m")])
    ticking.clock.step(-86_400)
    await ticking.look()
    assert len(await ticking.pass_time(120)) == 1  # the first one comes after a full period


async def test_a_clock_set_forward_is_seen_within_one_wake_up(ticking: Ticking) -> None:
    ticking.work.plan("qa-a", [every("1h")])
    ticking.clock.step(4 * 3600)
    assert len(await ticking.look()) == 1
    assert {skip.persona for skip in ticking.sink.skips} == {EVERYONE, "qa-a"}


async def test_a_little_drift_is_no_step(ticking: Ticking) -> None:
    ticking.work.plan("qa-a", [every("1h")])
    for _ in range(4):
        ticking.clock.step(-1.2)
        await ticking.look()
    assert ticking.sink.skips == []
    ticking.clock.step(-1.2)  # but it adds up
    await ticking.look()
    assert "set by -6 s" in ticking.sink.skips[0].reason


async def test_a_sink_that_raises_for_one_persona_disturbs_no_other(clock: FakeClock) -> None:
    sink = Refusing("qa-a")
    work = Clockwork(sink, clock=clock)
    for persona in ("qa-a", "qa-b"):
        work.plan(persona, [every("1s")])
    async with running(work.run):
        ticking = Ticking(clock, sink, work)
        for second in range(3):
            assert [key[:4] for key in await ticking.pass_time(1)] == ["qa-b"]
            assert sink.skips[second].persona == "qa-a"
            assert sink.skips[second].reason == "it could not be recorded: OSError: no space left"
        sink.refused.clear()
        assert len(await ticking.pass_time(1)) == 2


class Stuck(FiringRecorder):
    """Takes an hour over everything that concerns one persona."""

    async def fire(self, firing: Firing) -> bool:
        if firing.persona == "qa-a":
            await anyio.sleep(3600)
        return await super().fire(firing)


async def test_each_due_trigger_runs_or_has_a_skip_within_the_tick(clock: FakeClock) -> None:
    sink = Stuck()
    work = Clockwork(sink, clock=clock, sink_s=0.02)
    work.plan("qa-a", [every("1m")])
    for persona in ("qa-b", "qa-c", "qa-d", "qa-e"):
        work.plan(persona, [every("1s")])
    async with running(work.run):
        clock.advance(120)
        await work.wake()
        await anyio.sleep(0.2)
    assert sorted(firing.persona for firing in sink.fired) == ["qa-b", "qa-c", "qa-d", "qa-e"]
    assert [skip for skip in sink.skips if skip.persona == "qa-a"][
        -1
    ].reason == "it could not be recorded: the sink took too long"


class Slow(FiringRecorder):
    """Waits at a gate before it takes anything."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = anyio.Event()

    async def fire(self, firing: Firing) -> bool:
        await self.gate.wait()
        return await super().fire(firing)


async def test_ticks_that_come_while_the_sink_is_busy_become_one(clock: FakeClock) -> None:
    sink = Slow()
    work = Clockwork(sink, clock=clock)
    for persona in ("qa-a", "qa-b"):
        work.plan(persona, [every("1s")])
    async with running(work.run):
        for _ in range(5):
            clock.advance(1)
            await work.wake()
            await turns()
        sink.gate.set()
        await turns()
    assert [firing.due for firing in sink.fired] == [START + timedelta(seconds=n) for n in (1, 5, 5)]
    assert [skip.key for skip in sink.skips] == ["qa-b@2026-11-21T12:00:01Z", "qa-a@2026-11-21T12:00:02Z"]


async def test_it_starts_once_and_again_after_it_stopped(clock: FakeClock, sink: FiringRecorder) -> None:
    work = Clockwork(sink, clock=clock)
    work.plan("qa-a", [every("1s")])
    for second in (1, 2):
        async with running(work.run):
            with pytest.raises(UsageError, match="already running"):
                await work.run()
            clock.advance(1)
            await work.wake()
            await turns()
        assert len(sink.fired) == second
        clock.advance(5)
        await turns()
        assert len(sink.fired) == second  # nobody is left to fire
        clock.wall, clock.mono = START + timedelta(seconds=second), 1000.0 + second


async def test_real_time_needs_no_help(sink: FiringRecorder) -> None:
    clock = SystemClock()
    work = Clockwork(sink, clock=clock)
    async with running(work.run):
        work.plan("qa-a", [every("1s")])
        await until(lambda: sink.fired, 3.5)
        late = clock.now() - sink.fired[0].due
    assert timedelta(0) <= late < timedelta(seconds=0.25)
    assert sink.skips == []
