"""Time, in one place, so that tests can replace it."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

YEAR_9999 = 253_402_300_799
"""The last second that a four-digit year can say, in Unix time."""

_TIMES = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall-clock time, always in UTC."""

    def monotonic(self) -> float:
        """Seconds on a clock that never steps; for deadlines and latencies."""


class SystemClock:
    """The real clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def rest(period: float) -> float:
    """Seconds until the next whole multiple of `period` on the monotonic clock.

    All pollers sleep this way, so that they share one wake-up, which costs more than most polls.
    """
    return period - time.monotonic() % period


def iso(moment: datetime) -> str:
    """`2026-11-21T22:51:10Z`: the format of a time in a file; `iso_ms` in records."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:-6] + "Z"


def iso_ms(moment: datetime) -> str:
    """`2026-11-21T22:51:10.042Z`: a time in a record whose order matters."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@lru_cache(maxsize=4_096)
def iso_seconds(seconds: int) -> str:
    """`iso` of Unix seconds; what a stranger's chain says outside the years 1970 to 9999 is held to them."""
    return iso(datetime.fromtimestamp(max(0, min(seconds, YEAR_9999)), UTC))


def span(begin: str, end: str) -> str:
    """How long it is from one ISO time to another, in one unit."""
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{int(seconds // size)} {unit}"
    return "under a minute"


def clock_time(at: str, now: str) -> str:
    """An ISO time as `22:51`; on another day than now as `2026-11-21 22:51`."""
    return minute(at)[11:] if at[:10] == now[:10] else minute(at)


def minutes(text: str) -> str:
    """A text with its ISO times cut to the minute."""
    return _TIMES.sub(r"\1 \2 UTC", text)


def minute(at: str) -> str:
    """An ISO time to the minute, as in `2026-11-21 22:51`."""
    return at[:16].replace("T", " ")
