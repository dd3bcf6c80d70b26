"""The ticks of a clock: pure, the same on every machine, computed in one step over any gap."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from fleet.clock import iso

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
"""The origin of every interval, so that machines that start at different times agree."""
SECOND = timedelta(seconds=1)
NAMED = 5
"""Maximum ticks that a Skip names individually."""


class Ticks(Protocol):
    """An endless schedule. All moments are UTC, all ticks whole seconds."""

    def after(self, moment: datetime) -> datetime:
        """The first tick after `moment`."""

    def latest(self, moment: datetime) -> datetime:
        """The last tick at or before `moment`."""

    def first(self, since: datetime) -> datetime:
        """The first tick of a persona that was first seen, or last fired, at `since`."""


@dataclass(frozen=True, slots=True)
class Every:
    """A tick every `period` seconds, `offset` seconds after each multiple of it since EPOCH."""

    period: int
    offset: int = 0
    _origin: datetime = field(init=False, repr=False, compare=False)
    _step: timedelta = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_origin", EPOCH + timedelta(seconds=self.offset))
        object.__setattr__(self, "_step", timedelta(seconds=self.period))

    @classmethod
    def of(cls, period: float, persona: str) -> Every:
        """Offset by a hash of the persona: a random offset would differ between machines."""
        spread = int.from_bytes(hashlib.sha256(persona.encode()).digest()[:8], "big")
        return cls(int(period), spread % int(period))

    @classmethod
    def at(cls, period: float, first: datetime) -> Every:
        """A tick at `first` and each period after it: a moment that daemons share."""
        return cls(int(period), int((first - EPOCH).total_seconds()) % int(period))

    def after(self, moment: datetime) -> datetime:
        return self._origin + ((moment - self._origin) // self._step + 1) * self._step

    def latest(self, moment: datetime) -> datetime:
        return self._origin + (moment - self._origin) // self._step * self._step

    def first(self, since: datetime) -> datetime:
        """The first tick that is a full period after `since`."""
        return self.after(since + self._step - timedelta(microseconds=1))


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


def following(ticks: Ticks, previous: datetime, now: datetime) -> datetime:
    """The tick to fire after `previous`: the next one, or the latest if several are due.

    One step for any gap: a clock that was set ten years forward costs no more than a late timer.
    """
    coming = ticks.after(previous)
    return ticks.latest(now) if coming <= now else coming


@dataclass(slots=True)
class Schedule:
    """The progress of one schedule: its next tick, and the ticks that fired."""

    ticks: Ticks
    next: datetime
    span: TickSpan | None = None

    def take(self, tick: datetime) -> datetime | None:
        """Move past the due `tick`; return the first tick that fires with it, or None if it already fired."""
        first, missed = self.next, self.next < tick
        again = self.span is not None and tick in self.span
        self.next = self.ticks.after(tick)
        self.span = self.span.grown(tick, missed=missed) if self.span else TickSpan(tick, tick)
        return None if again else first

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
