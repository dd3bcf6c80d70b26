"""APScheduler 3 as the fleet uses it, and the only file that imports it.

What it does is keep ten thousand next ticks in order and wake up for them. What a tick is, and which of
several missed ones fires, is decided in `ticks.py`. Three things differ from its usual use:

* Its jobs do nothing: the event of their submission hands over the scheduled time, which a job never
  learns. So nothing is ever too late to start, and the grace for misfires, 1 s by default, is none.
* The time zone is the clock. APScheduler reads the time as `datetime.now(timezone)` and nowhere else, so a
  zone that answers with the injected clock makes every decision testable without waiting.
* Its own interval trigger walks through every missed tick; ten years of seconds would hang the daemon.
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
from fleet.triggers.ticks import Ticks, following


class Alarm:
    """Calls `on_tick(job, tick)` in the running event loop when a job's tick is due.

    Jobs are added, moved and removed while it runs, that is inside `started`.
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
        """A new job, whose first tick is `tick`."""
        trigger = _Coming(ticks, self._zone)
        self._scheduler.add_job(_nothing, trigger, id=job, name=job, next_run_time=self._local(tick))

    def move(self, job: str, tick: datetime) -> None:
        """Let the next tick of a job be another one."""
        self._scheduler.modify_job(job, next_run_time=self._local(tick))

    def remove(self, job: str) -> None:
        self._scheduler.remove_job(job)

    def wake(self) -> None:
        """Look at the clock soon, in the loop."""
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
        """APScheduler would read weekday 0 as Monday: it is given names."""
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
        """By halving, because a CronTrigger only looks ahead. Two ticks are at most eight years apart."""
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
    """What an APScheduler job of the fleet does."""


class _Nothing(BaseExecutor):  # type: ignore[misc]
    """Runs no job: the submission itself is what the fleet listens to."""

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        self._run_job_success(job.id, [])


class _Coming(BaseTrigger):  # type: ignore[misc]
    """Our ticks, as APScheduler asks for them: after the one that was submitted, or that it looked at."""

    __slots__ = ("_answer", "_ticks", "_zone")

    def __init__(self, ticks: Ticks, zone: tzinfo) -> None:
        self._ticks, self._zone = ticks, zone
        self._answer: tuple[datetime, datetime, datetime] | None = None  # each is asked for twice

    def get_next_fire_time(self, previous_fire_time: datetime, now: datetime) -> datetime:
        last = self._answer
        if last is not None and last[0] is previous_fire_time and last[1] is now:
            return last[2]
        tick = following(self._ticks, previous_fire_time.replace(tzinfo=UTC), now.replace(tzinfo=UTC))
        local = tick.replace(tzinfo=self._zone)
        self._answer = (previous_fire_time, now, local)
        return local


class _Wall(tzinfo):
    """UTC as the injected clock has it. Ticks carry this very object, so they are never converted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def fromutc(self, _moment: datetime) -> datetime:
        """What `datetime.now(zone)` answers."""
        return self._clock.now().replace(tzinfo=self)

    def utcoffset(self, _moment: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, _moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, _moment: datetime | None) -> str:
        return "UTC"
