"""Clock triggers: interval and cron, planned and replanned while the daemon runs.

Timers are monotonic, so a step of the wall clock goes unnoticed until the next timer. Therefore wall and
monotonic time are compared at least every 30 s and before anything is planned or fires; when they differ by
more than 5 s, everything is replanned. A clock that was wrong only between two looks leaves no wrong plan.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import anyio

from fleet.clock import Clock, SystemClock, iso
from fleet.errors import UsageError
from fleet.personas.duration import parse_duration
from fleet.personas.model import Trigger
from fleet.triggers.clock.alarm import Alarm, Cron
from fleet.triggers.clock.ticks import SECOND, Every, Schedule, Ticks, named
from fleet.triggers.deliver import SINK_S, TOO_LONG, attempt, described, tell
from fleet.triggers.model import EVERYONE, FireAll, Firing, FiringSink, Skip, tick_key

WAKE_S = 30.0
"""Maximum sleep, and so the maximum delay until a step of the wall clock is noticed."""
STEP_S = 5.0
"""Minimum step; less is drift, which the next wake-up absorbs."""
CROWD = 1000
"""Maximum firings recorded together."""

_LOG = logging.getLogger("fleet.triggers")


@dataclass(frozen=True, slots=True)
class _Planned:
    """One clock trigger of one persona."""

    persona: str
    why: str
    schedule: Schedule


class Clockwork:
    """Fires personas at their ticks. Plans may change at any time, before and while it runs.

    `run` raises UsageError when already running; after it ends it may run again with the same plans.
    """

    def __init__(
        self,
        sink: FiringSink,
        *,
        fire_all: FireAll | None = None,
        clock: Clock | None = None,
        sink_s: float = SINK_S,
    ) -> None:
        self._sink = sink
        self._fire_all = fire_all
        self._sink_s = sink_s
        self._clock = clock or SystemClock()
        self._planned: dict[str, _Planned] = {}
        self._jobs: dict[str, list[str]] = {}  # by persona
        self._due: OrderedDict[str, tuple[datetime, datetime]] = OrderedDict()  # first and last tick due
        self._alone = 0  # firings to record one by one
        self._ready = asyncio.Event()
        self._alarm: Alarm | None = None
        self._lead = self._drift(self._clock.now())
        self._steps: list[Skip] = []  # to record

    def plan(
        self,
        persona: str,
        triggers: Sequence[Trigger],
        *,
        since: datetime | None = None,
        first: datetime | None = None,
    ) -> None:
        """Set the clock triggers of a persona; unchanged triggers keep their timers.

        Args:
            since: its last tick, from the journal. With it, a restart neither delays a daily persona nor
                hides missed ticks.
            first: when its intervals start to count, from the journal: their first tick. Without it, the
                first tick is after one full period, at an offset derived from the name.
        """
        now = self._notice()
        since = min(since, now) if since else None  # a future time was written by a wrong clock
        wanted = dict(_plans(persona, triggers, first))
        for job in self._jobs.pop(persona, []):
            if job not in wanted:
                self._remove(job)
        for job, (why, ticks) in wanted.items():
            if job not in self._planned:
                coming = ticks.first(since or min(first or now, now))
                if first and not since and isinstance(ticks, Every):
                    coming = ticks.after(first - SECOND)
                self._planned[job] = _Planned(persona, why, Schedule(ticks, coming))
                self._add(job)
        if wanted:
            self._jobs[persona] = list(wanted)

    def drop(self, persona: str) -> None:
        """Forget a persona and its due firings that are not yet delivered."""
        self.plan(persona, ())

    def upcoming(self) -> dict[str, datetime]:
        """The next tick of each persona."""
        found: dict[str, datetime] = {}
        for planned in self._planned.values():
            tick = planned.schedule.next
            found[planned.persona] = min(tick, found.get(planned.persona, tick))
        return found

    async def run(self) -> None:
        """Fire until cancelled."""
        if self._alarm is not None:
            raise UsageError("the clock is already running")
        self._alarm = alarm = Alarm(self._clock, self._on_tick)
        try:
            for job in self._planned:
                self._add(job)
            alarm.start()
            self._ready.set()  # deliver what an earlier stop left
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hand_over)
                while True:
                    await anyio.sleep(WAKE_S)
                    await self.wake()
        finally:
            self._alarm = None
            with anyio.CancelScope(shield=True):
                await alarm.stop()

    async def wake(self) -> None:
        """Check the clock now: fire what is due, and notice a step."""
        self._notice()
        await self._tell_steps()
        if self._alarm is not None:
            self._alarm.wake()

    def _notice(self) -> datetime:
        """The current time; replan if the wall clock was set. `_tell_steps`, which may wait, records it."""
        now = self._clock.now()
        lead = self._drift(now)
        step = lead - self._lead
        if abs(step) > STEP_S:
            self._lead = lead
            self._replan(now)
            reason = f"the wall clock was set by {step:+.0f} s: ticks that fired do not fire again"
            self._steps.append(Skip(EVERYONE, tick_key(EVERYONE, now), reason))
            self._ready.set()
        return now

    async def _tell_steps(self) -> None:
        while self._steps:
            await tell(self._sink, self._steps.pop(0))

    def _drift(self, now: datetime) -> float:
        return now.timestamp() - self._clock.monotonic()

    def _replan(self, now: datetime) -> None:
        for job, planned in self._planned.items():
            before = planned.schedule.next
            planned.schedule.reset(now)
            if self._alarm is not None and planned.schedule.next != before:
                self._alarm.move(job, planned.schedule.next)

    def _add(self, job: str) -> None:
        if self._alarm is not None:
            schedule = self._planned[job].schedule
            self._alarm.add(job, schedule.ticks, schedule.next)

    def _remove(self, job: str) -> None:
        del self._planned[job]
        if self._alarm is not None:
            self._alarm.remove(job)

    def _on_tick(self, job: str, tick: datetime) -> None:
        """Queue a due tick for the sink; of a trigger that is already queued, keep only the latest tick."""
        self._notice()
        first = self._planned[job].schedule.take(tick)
        if first is None:
            return
        waiting = self._due.get(job)
        self._due[job] = (waiting[0] if waiting else first, tick)
        self._ready.set()

    async def _hand_over(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            await self._tell_steps()
            while self._due:
                await self._hand_over_until_stuck()

    async def _hand_over_until_stuck(self) -> None:
        """Deliver under one deadline, extended on the way: a scope per firing costs more than the firing."""
        due: dict[str, Firing] = {}
        with anyio.CancelScope() as scope:
            while self._due:
                now = anyio.current_time()
                if scope.deadline - now < self._sink_s or scope.deadline == math.inf:
                    scope.deadline = now + 1.5 * self._sink_s
                due.clear()
                await self._take(due)
                await self._fire(due)
        if scope.cancelled_caught and len(due) > 1:
            self._one_by_one(due, TOO_LONG)
        elif scope.cancelled_caught:
            for firing in due.values():
                await tell(self._sink, Skip(firing.persona, firing.key, TOO_LONG))

    async def _take(self, due: dict[str, Firing]) -> None:
        """Move the longest due firings to `due`, by job; record missed ticks as Skips."""
        room = 1 if self._fire_all is None or self._alone else CROWD
        self._alone = max(0, self._alone - 1)
        while self._due and len(due) < room:
            job, (first, tick) = self._due.popitem(last=False)
            planned = self._planned.get(job)
            if planned is None:
                continue
            persona, ticks = planned.persona, planned.schedule.ticks
            due[job] = Firing(tick_key(persona, tick), persona, planned.why, tick)
            if first < tick:
                late = f"missed {named(ticks, first, tick)}: the clock or the machine stood still"
                reason = f"{late}; only {iso(tick)} runs"
                await tell(self._sink, Skip(persona, tick_key(persona, first), reason))

    async def _fire(self, due: dict[str, Firing]) -> None:
        if self._fire_all is not None and len(due) > 1:
            try:
                await self._fire_all(list(due.values()))
            except Exception as error:
                self._one_by_one(due, described(error))
            return
        for firing in due.values():
            if problem := await attempt(self._sink, firing):
                await tell(self._sink, Skip(firing.persona, firing.key, problem))

    def _one_by_one(self, due: dict[str, Firing], problem: str) -> None:
        """Requeue firings that could not be recorded together, to find out which of them fails."""
        _LOG.warning("%d firings go one by one: %s", len(due), problem)
        self._alone = len(due)
        for job, firing in reversed(due.items()):
            latest = self._due.get(job, (firing.due, firing.due))[1]
            self._due[job] = (firing.due, latest)
            self._due.move_to_end(job, last=False)


def _plans(
    persona: str, triggers: Sequence[Trigger], first: datetime | None
) -> Iterator[tuple[str, tuple[str, Ticks]]]:
    """Job id to (why, ticks). The id describes the trigger: an unchanged trigger keeps its job."""
    for trigger in triggers:
        if trigger.every is not None:
            why = f"every {trigger.every}"
            period = parse_duration(trigger.every)
            yield f"{persona} {why}", (why, Every.at(period, first) if first else Every.of(period, persona))
        if trigger.cron is not None:
            why = f"cron {' '.join(trigger.cron.split())}"
            yield f"{persona} {why}", (why, Cron.of(trigger.cron))
