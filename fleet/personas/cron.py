"""Cron expressions, as crontab(5) has them; read here, so that a file with a bad one is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

FORM = "minute hour day month weekday in UTC, such as `30 6 * * mon-fri`"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_PART = re.compile(
    r"(?:(?P<all>\*)|(?P<low>[a-z0-9]{1,3})(?:-(?P<high>[a-z0-9]{1,3}))?)(?:/(?P<step>[0-9]{1,2}))?"
)


@dataclass(frozen=True, slots=True)
class CronFields:
    """The values of each field, ascending. Sunday is weekday 0; all seven are every day."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]


def parse_cron(text: str) -> CronFields:
    """Five fields of `*`, numbers, names, ranges, steps and lists; ValueError names the wrong field.

    Restricting both day and weekday is refused: in a crontab it means either, which surprises most people;
    two triggers say it clearly. A day that no month has is refused too.
    """
    words = text.lower().split()
    if len(words) != 5:
        raise ValueError(f"{text!r} does not have five fields")
    minute, hour, day, month, weekday = words
    fields = CronFields(
        _values(minute, "minute", 0, 59),
        _values(hour, "hour", 0, 23),
        _values(day, "day", 1, 31),
        _values(month, "month", 1, 12, _MONTHS),
        tuple(sorted({value % 7 for value in _values(weekday, "weekday", 0, 7, WEEKDAYS)})),
    )
    if len(fields.days) < 31 and len(fields.weekdays) < 7:
        raise ValueError("day and weekday are both restricted: write one trigger for each")
    if all(fields.days[0] > _LONGEST[month - 1] for month in fields.months):
        raise ValueError(f"day {fields.days[0]} is in none of its months")
    return fields


def _values(text: str, field: str, low: int, high: int, names: tuple[str, ...] = ()) -> tuple[int, ...]:
    chosen: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or (match["step"] and not match["all"] and not match["high"]):
            raise ValueError(f"{part!r} is not a valid {field}")
        first = low if match["all"] else _number(match["low"], field, low, high, names)
        last = high if match["all"] else first
        if match["high"]:
            last = _number(match["high"], field, low, high, names)
        step = int(match["step"] or 1)
        if last < first or step == 0:
            raise ValueError(f"{part!r} is not a valid {field}")
        chosen.update(range(first, last + 1, step))
    return tuple(sorted(chosen))


def _number(word: str, field: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if word in names:
        return names.index(word) + low
    if not word.isdecimal() or not low <= int(word) <= high:
        raise ValueError(f"{word!r} is not a valid {field}: {low} to {high}")
    return int(word)
