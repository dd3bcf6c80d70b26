"""The fleet's use of APScheduler 3; only this file imports it.

APScheduler keeps ten thousand next ticks in order and wakes up for them. `ticks.py` defines the ticks and
decides which of several missed ones fires. Three things differ from the usual use:

* Jobs do nothing: the event of their submission carries the scheduled time, which a job itself does not get.
  So no job is ever too late, and the misfire grace time, 1 s by default, is unlimited.
* The time zone is the clock. APScheduler reads the time only as `datetime.now(timezone)`, so a time zone that
  returns the injected clock's time makes every decision testable without waiting.
* Our own triggers: APScheduler's interval trigger iterates over every missed tick, and ten years of seconds
  would hang the daemon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import anyio.lowlevel
from apscheduler.events import EVENT_JOB_SUBMITTED
from apscheduler.executors.base import BaseExecutor
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from fleet.clock import Clock
from fleet.personas.cron import WEEKDAYS, parse_cron
from fleet.triggers.clock.ticks import Ticks, following


class Alarm:
    """Calls `on_tick(job, tick)` in the running event loop when a job's tick is due.

    Add, move and remove jobs only while it runs.
    """

    def __init__(self, clock: Clock, on_tick: Callable[[str, datetime], None]) -> None:
        self._zone = _Wall(clock)
        self._on_tick = on_tick
        self._scheduler: Any = AsyncIOScheduler(
            timezone=self._zone,
            executors={"default": _Nothing()},
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        self._scheduler.add_listener(self._submitted, EVENT_JOB_SUBMITTED)

    def start(self) -> None:
        self._scheduler.start()

    async def stop(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
            await anyio.lowlevel.checkpoint()  # APScheduler stops in a callback of the loop

    def add(self, job: str, ticks: Ticks, tick: datetime) -> None:
        """Add a job whose first tick is `tick`."""
        trigger = _Coming(ticks, self._zone)
        self._scheduler.add_job(_nothing, trigger, id=job, name=job, next_run_time=self._local(tick))

    def move(self, job: str, tick: datetime) -> None:
        """Change the next tick of a job."""
        self._scheduler.modify_job(job, next_run_time=self._local(tick))

    def remove(self, job: str) -> None:
        self._scheduler.remove_job(job)

    def wake(self) -> None:
        """Check the clock soon, in the event loop."""
        self._scheduler.wakeup()

    def _local(self, tick: datetime) -> datetime:
        return tick.replace(tzinfo=self._zone)

    def _submitted(self, event: Any) -> None:
        self._on_tick(event.job_id, event.scheduled_run_times[-1].replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Cron:
    """The ticks of a cron expression, in UTC."""

    trigger: Any

    @classmethod
    def of(cls, expression: str) -> Cron:
        """Parse an expression. Passes weekday names, since APScheduler would read 0 as Monday."""
        fields = parse_cron(expression)
        return cls(
            CronTrigger(
                minute=_list(fields.minutes, 60),
                hour=_list(fields.hours, 24),
                day=_list(fields.days, 31),
                month=_list(fields.months, 12),
                day_of_week=_list([WEEKDAYS[day] for day in fields.weekdays], 7),
                timezone=UTC,
            )
        )

    def after(self, moment: datetime) -> datetime:
        return self._from(moment + timedelta(microseconds=1))

    def latest(self, moment: datetime) -> datetime:
        """Search by bisection, as a CronTrigger only looks ahead. Ticks are at most eight years apart."""
        back = timedelta(minutes=1)
        while (tick := self._from(moment - back)) > moment:
            back *= 2
        end = moment + timedelta(microseconds=1)  # no tick from here to `moment`
        while end - tick > timedelta(minutes=1):
            middle = tick + (end - tick) / 2
            found = self._from(middle)
            if found <= moment:
                tick = found
            else:
                end = middle
        return tick

    def first(self, since: datetime) -> datetime:
        return self.after(since)

    def _from(self, moment: datetime) -> datetime:
        tick: datetime = self.trigger.get_next_fire_time(None, moment)
        return tick


def _list(values: Sequence[object], all_of_them: int) -> str:
    return "*" if len(values) == all_of_them else ",".join(map(str, values))


def _nothing() -> None:
    """The function of every APScheduler job."""


class _Nothing(BaseExecutor):  # type: ignore[misc]
    """Runs no job: the fleet only needs the submission event."""

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        self._run_job_success(job.id, [])


class _Coming(BaseTrigger):  # type: ignore[misc]
    """Adapts our ticks to APScheduler, which asks for the tick after the last submitted or inspected one."""

    __slots__ = ("_answer", "_ticks", "_zone")

    def __init__(self, ticks: Ticks, zone: tzinfo) -> None:
        self._ticks, self._zone = ticks, zone
        self._answer: tuple[datetime, datetime, datetime] | None = None  # APScheduler asks twice for each

    def get_next_fire_time(self, previous_fire_time: datetime, now: datetime) -> datetime:
        last = self._answer
        if last is not None and last[0] is previous_fire_time and last[1] is now:
            return last[2]
        tick = following(self._ticks, previous_fire_time.replace(tzinfo=UTC), now.replace(tzinfo=UTC))
        local = tick.replace(tzinfo=self._zone)
        self._answer = (previous_fire_time, now, local)
        return local


class _Wall(tzinfo):
    """UTC by the injected clock. Ticks carry this object itself, so they are never converted."""

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
