"""Clock triggers: interval and cron, planned and replanned while the daemon runs.

APScheduler 3 keeps ten thousand next ticks in order and wakes up for them; `ticks.py` defines the ticks and
decides which of several missed ones fires. Its jobs do nothing: the event of their submission is what counts.
So no job is ever too late, and the misfire grace time, 1 s by default, is unlimited.

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
from datetime import datetime, timedelta, tzinfo
from typing import Any

import anyio
import anyio.lowlevel
from apscheduler.events import EVENT_JOB_SUBMITTED
from apscheduler.executors.base import BaseExecutor
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from fleet.clock import Clock, SystemClock, iso
from fleet.errors import UsageError
from fleet.personas.duration import parse_duration
from fleet.personas.model import Trigger
from fleet.triggers.clock.ticks import SECOND, Cron, Every, Schedule, Ticks, named
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
        self._scheduler: Any = None  # while it runs
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
                del self._planned[job]
                if self._scheduler:
                    self._scheduler.remove_job(job)
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
        if self._scheduler:
            raise UsageError("the clock is already running")
        self._scheduler = AsyncIOScheduler(
            timezone=_Wall(self._clock),
            executors={"default": _NoExecutor()},
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        self._scheduler.add_listener(lambda event: self._on_due(event.job_id), EVENT_JOB_SUBMITTED)
        try:
            for job in self._planned:
                self._add(job)
            self._scheduler.start()
            self._ready.set()  # deliver what an earlier stop left
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hand_over)
                while True:
                    await anyio.sleep(WAKE_S)
                    await self.wake()
        finally:
            scheduler, self._scheduler = self._scheduler, None
            if scheduler.running:
                with anyio.CancelScope(shield=True):
                    scheduler.shutdown(wait=False)
                    await anyio.lowlevel.checkpoint()  # APScheduler stops in a callback of the loop

    async def wake(self) -> None:
        """Check the clock now: fire what is due, and notice a step."""
        self._notice()
        await self._tell_steps()
        if self._scheduler:
            self._scheduler.wakeup()

    def _notice(self) -> datetime:
        """The current time; replan if the wall clock was set. `_tell_steps`, which may wait, records it."""
        now = self._clock.now()
        lead = self._drift(now)
        step = lead - self._lead
        if abs(step) > STEP_S:
            self._lead = lead
            for job, planned in self._planned.items():
                before = planned.schedule.next
                planned.schedule.reset(now)
                if planned.schedule.next != before:
                    self._move(job)
            reason = f"the wall clock was set by {step:+.0f} s: ticks that fired do not fire again"
            self._steps.append(Skip(EVERYONE, tick_key(EVERYONE, now), reason))
            self._ready.set()
        return now

    async def _tell_steps(self) -> None:
        while self._steps:
            await tell(self._sink, self._steps.pop(0))

    def _drift(self, now: datetime) -> float:
        return now.timestamp() - self._clock.monotonic()

    def _add(self, job: str) -> None:
        if self._scheduler:
            ticks, tick = self._planned[job].schedule.ticks, self._next(job)
            self._scheduler.add_job(_nothing, ticks, id=job, name=job, next_run_time=tick)

    def _move(self, job: str) -> None:
        if self._scheduler:
            self._scheduler.modify_job(job, next_run_time=self._next(job))

    def _next(self, job: str) -> datetime:
        return self._planned[job].schedule.next.replace(tzinfo=self._scheduler.timezone)

    def _on_due(self, job: str) -> None:
        """Queue the tick that is due; of a trigger that is already queued, keep only the latest."""
        now, schedule = self._notice(), self._planned[job].schedule
        if schedule.next > now:  # the clock was set back a little meanwhile
            self._move(job)
        elif taken := schedule.take(now):
            waiting = self._due.get(job)
            self._due[job] = (waiting[0] if waiting else taken[0], taken[1])
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
                # move the longest due firings to `due`, by job; record missed ticks as Skips
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
                await self._fire(due)
        if scope.cancelled_caught and len(due) > 1:
            self._one_by_one(due, TOO_LONG)
        elif scope.cancelled_caught:
            for firing in due.values():
                await tell(self._sink, Skip(firing.persona, firing.key, TOO_LONG))

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


def _nothing() -> None:
    """The function of every APScheduler job."""


class _NoExecutor(BaseExecutor):  # type: ignore[misc]
    """Runs no job: APScheduler's own executors take as long for one as all else here does (mark B15)."""

    def _do_submit_job(self, job: Any, run_times: object) -> None:  # noqa: ANN401, ARG002  APScheduler's
        self._run_job_success(job.id, [])


class _Wall(tzinfo):
    """UTC by the injected clock: APScheduler reads the time only as `datetime.now(timezone)`.

    What APScheduler gets carries this object itself: a conversion to it would be the time now.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def fromutc(self, _moment: datetime) -> datetime:
        """The result of `datetime.now(zone)`."""
        return self._clock.now().replace(tzinfo=self)

    def utcoffset(self, _moment: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, _moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, _moment: datetime | None) -> str:
        return "UTC"
