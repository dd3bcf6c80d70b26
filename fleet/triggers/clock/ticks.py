"""Ticks of the clock triggers, by APScheduler's own triggers, and which of several missed ones fires."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from fleet.clock import iso
from fleet.personas.cron import WEEKDAYS, parse_cron

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
"""The origin of every interval, so that machines that start at different times agree."""
SECOND = timedelta(seconds=1)
NAMED = 5
"""Maximum ticks that a Skip names individually."""


class Ticks(BaseTrigger):  # type: ignore[misc]
    """An endless schedule. All moments are UTC, all ticks whole seconds.

    To the scheduler it is a trigger that leaves out missed ticks: APScheduler's interval trigger returns each
    of them, and ten years of seconds would hang the daemon.
    """

    __slots__ = ("_answer", "_asked", "_trigger")

    def __init__(self, trigger: IntervalTrigger | CronTrigger) -> None:
        self._trigger = trigger
        self._asked: tuple[datetime | None, datetime | None] = (None, None)
        self._answer = EPOCH

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """APScheduler's question: the tick after `previous_fire_time`, or after `now` if that is later."""
        if self._asked[0] is not previous_fire_time or self._asked[1] is not now:  # it asks twice for each
            moment = now if previous_fire_time is None else max(previous_fire_time, now)
            self._asked = previous_fire_time, now
            self._answer = self.after(moment.replace(tzinfo=UTC)).replace(tzinfo=now.tzinfo)
        return self._answer

    def after(self, moment: datetime) -> datetime:
        """The first tick after `moment`."""
        tick: datetime = self._trigger.get_next_fire_time(None, moment.replace(microsecond=0) + SECOND)
        return tick

    def latest(self, moment: datetime) -> datetime:
        """The last tick at or before `moment`."""
        raise NotImplementedError

    def first(self, since: datetime) -> datetime:
        """The first tick of a persona that was first seen, or last fired, at `since`."""
        return self.after(since)


class Every(Ticks):
    """A tick every `period` seconds, `offset` seconds after each multiple of it since EPOCH."""

    __slots__ = ("_step", "offset", "period")

    def __init__(self, period: int, offset: int = 0) -> None:
        self.period, self.offset, self._step = period, offset, timedelta(seconds=period)
        start = datetime.fromtimestamp((EPOCH.timestamp() + offset) % period, UTC)  # before any clock
        super().__init__(IntervalTrigger(seconds=period, start_date=start, timezone=UTC))

    @classmethod
    def of(cls, period: float, persona: str) -> Every:
        """Offset by a hash of the persona: a random offset would differ between machines."""
        spread = int.from_bytes(hashlib.sha256(persona.encode()).digest()[:8], "big")
        return cls(int(period), spread % int(period))

    @classmethod
    def at(cls, period: float, first: datetime) -> Every:
        """A tick at `first` and each period after it: a moment that daemons share."""
        return cls(int(period), int((first - EPOCH).total_seconds()) % int(period))

    def latest(self, moment: datetime) -> datetime:
        return self.after(moment) - self._step

    def first(self, since: datetime) -> datetime:
        """The first tick that is a full period after `since`."""
        return self.after(since + self._step - timedelta(microseconds=1))


class Cron(Ticks):
    """The ticks of a cron expression, in UTC."""

    __slots__ = ()

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

    def latest(self, moment: datetime) -> datetime:
        """Search by bisection, as a CronTrigger only looks ahead. Ticks are at most eight years apart."""
        back = timedelta(minutes=1)
        while (tick := self.after(moment - back)) > moment:
            back *= 2
        end = moment + timedelta(microseconds=1)  # no tick from here to `moment`
        while end - tick > timedelta(minutes=1):
            middle = tick + (end - tick) / 2
            found = self.after(middle)
            if found <= moment:
                tick = found
            else:
                end = middle
        return tick


def _list(values: Sequence[object], all_of_them: int) -> str:
    return "*" if len(values) == all_of_them else ",".join(map(str, values))


@dataclass(frozen=True, slots=True)
class TickSpan:
    """Consecutive ticks that this process fired, without a gap."""

    first: datetime
    last: datetime

    def __contains__(self, tick: datetime) -> bool:
        return self.first <= tick <= self.last

    def grown(self, tick: datetime, *, missed: bool) -> TickSpan:
        """Add a tick. After a gap the span restarts, because the ticks in the gap never fired.

        A tick before the span is ignored: the clock was set back, and only the journal guards that far.
        """
        if tick < self.first:
            return self
        return TickSpan(tick if missed else self.first, max(tick, self.last))


@dataclass(slots=True)
class Schedule:
    """The progress of one schedule: its next tick, and the ticks that fired."""

    ticks: Ticks
    next: datetime
    span: TickSpan | None = None

    def take(self, now: datetime) -> tuple[datetime, datetime] | None:
        """Move past what is due: the first and the last tick due, or None if the last one already fired.

        One step for any gap: a clock that was set ten years forward costs no more than a late timer.
        """
        first = tick = self.next
        if first > now:
            return None
        self.next = self.ticks.after(tick)
        if missed := self.next <= now:
            tick = self.ticks.latest(now)
            self.next = self.ticks.after(tick)
        again = self.span is not None and tick in self.span
        self.span = self.span.grown(tick, missed=missed) if self.span else TickSpan(tick, tick)
        return None if again else (first, tick)

    def reset(self, now: datetime) -> None:
        """Choose the next tick again, because the wall clock was set to `now`.

        Set forward: the next tick is due, and stays. Set back into ticks that fired: the tick after the last
        of them, because their keys are used. Set back further (it had been wrong): the next from now.
        """
        if self.next <= now:
            return
        if self.span is None:
            self.next = min(self.next, self.ticks.first(now))
            return
        coming = self.ticks.after(now)
        self.next = self.ticks.after(self.span.last) if coming in self.span else coming


def named(ticks: Ticks, first: datetime, until: datetime) -> str:
    """The ticks from `first` to before `until` for a Skip: the first few, then the last one."""
    names: list[str] = []
    tick = first
    while tick < until and len(names) < NAMED:
        names.append(iso(tick))
        tick = ticks.after(tick)
    if tick < until:
        names.append(f"and more, up to {iso(ticks.latest(until - SECOND))}")
    return ", ".join(names)
