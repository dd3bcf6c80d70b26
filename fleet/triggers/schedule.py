"""The clock: interval and cron triggers, planned and planned anew while the daemon runs.

Timers are monotonic, so a step of the wall clock goes unseen until the next one: this looks at least every
30 s and before anything is planned or fires, and plans anew when wall and monotonic time differ by more
than 5 s. A clock that was wrong only between two looks has then left nothing planned by it.
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
from fleet.triggers.deliver import SINK_S, TOO_LONG, attempt, described, tell
from fleet.triggers.model import EVERYONE, FireAll, Firing, FiringSink, Skip, tick_key
from fleet.triggers.scheduler import Alarm, Cron
from fleet.triggers.ticks import Every, Schedule, Ticks, named

WAKE_S = 30.0
"""The longest sleep: how late a step of the wall clock is noticed."""
STEP_S = 5.0
"""Less is drift, which the next wake-up absorbs."""
CROWD = 1000
"""Firings that are recorded together."""

_LOG = logging.getLogger("fleet.triggers")


@dataclass(frozen=True, slots=True)
class _Planned:
    """One clock trigger of one persona."""

    persona: str
    why: str
    schedule: Schedule


class Clockwork:
    """Fires personas at their ticks. Plans may change at any time, before and while it runs.

    `run` raises UsageError when it runs already; after it ended it may run again, with the same plans.
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
        self._steps: list[Skip] = []  # to be told

    def plan(self, persona: str, triggers: Sequence[Trigger], *, since: datetime | None = None) -> None:
        """Set the clock triggers of a persona; those that it had and keeps are not disturbed.

        Args:
            since: its last tick, or when it was first seen, as the journal knows them; now when it does not.
                A restart that passes it neither delays a daily persona nor hides what it missed.
        """
        now = self._notice()
        since = min(since or now, now)  # the clock was wrong when it was written
        wanted = dict(_plans(persona, triggers))
        for job in self._jobs.pop(persona, []):
            if job not in wanted:
                self._remove(job)
        for job, (why, ticks) in wanted.items():
            if job not in self._planned:
                self._planned[job] = _Planned(persona, why, Schedule(ticks, ticks.first(since)))
                self._add(job)
        if wanted:
            self._jobs[persona] = list(wanted)

    def drop(self, persona: str) -> None:
        """Forget a persona, and what of it was due but not handed over yet."""
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
            raise UsageError("the clock has been started already")
        self._alarm = alarm = Alarm(self._clock, self._on_tick)
        try:
            for job in self._planned:
                self._add(job)
            alarm.start()
            self._ready.set()  # for what an earlier stop left
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
        """Look at the clock now: what is due fires, and a step of it is noticed."""
        self._notice()
        await self._tell_steps()
        if self._alarm is not None:
            self._alarm.wake()

    def _notice(self) -> datetime:
        """Now; plans anew when the wall clock was set since the last time: told by whoever may wait."""
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
        """Keep what is due until the sink has time; of a trigger that still waits there, the latest tick."""
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
        """One deadline for all that is due, put off as they go: a scope for each costs more than the rest."""
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
        """Move what is longest due to `due`, by job; what was missed is told."""
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
        """Put back what could not be recorded at once: what is wrong with which of them shows then."""
        _LOG.warning("%d firings go one by one: %s", len(due), problem)
        self._alone = len(due)
        for job, firing in reversed(due.items()):
            latest = self._due.get(job, (firing.due, firing.due))[1]
            self._due[job] = (firing.due, latest)
            self._due.move_to_end(job, last=False)


def _plans(persona: str, triggers: Sequence[Trigger]) -> Iterator[tuple[str, tuple[str, Ticks]]]:
    """Job id to (why, ticks). The id says what the trigger is: a trigger that stays keeps its job."""
    for trigger in triggers:
        if trigger.every is not None:
            why = f"every {trigger.every}"
            yield f"{persona} {why}", (why, Every.of(parse_duration(trigger.every), persona))
        if trigger.cron is not None:
            why = f"cron {' '.join(trigger.cron.split())}"
            yield f"{persona} {why}", (why, Cron.of(trigger.cron))
