"""When a platform may be tested, and with what care which host: `[schedule]` and `[hosts]` of a profile."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from fleet.clock import Clock, iso
from fleet.config.section import Section, TimeZone, is_loopback, time_zone
from fleet.config.url_list import NO_URLS, UrlList, host_of

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW = re.compile(
    r"(?:(?P<days>[A-Z][a-z]{2}(?:[-,][A-Z][a-z]{2})*) )?"
    r"(?P<begin>(?:[01]\d|2[0-3]):[0-5]\d)-(?P<end>(?:[01]\d|2[0-3]):[0-5]\d|24:00)",
    re.ASCII,
)
_DAY_MIN = 24 * 60
MOSTLY = 0.8
"""The share of the time of the tests after which a person is notified."""
WARNINGS_MIN = (60, 30, 5)
"""Minutes before the end of the tests at which a person is warned."""
_AHEAD_H = 9 * 24
"""Longest time in hours until a window of a week opens or closes, with a change of the clocks."""


Criticality = Literal["critical", "production", "non-production", "unknown"]


class HostSection(Section):
    """One host, and how much hangs on it."""

    criticality: Criticality = "unknown"
    """`critical`: asked only where somebody `approved` it, at most once a second, and nothing is changed at
    any rung. `production`, and `unknown`: changed only where somebody `approved` it. `non-production`: as the
    dial has it. A host without a table is unknown; one of this machine is not in production."""
    approved: Annotated[str, StringConstraints(max_length=200)] = ""
    """Who permitted tests of a critical host, or acts on one in production, and by what: `ada, QA-7`."""
    third_party: Annotated[str, StringConstraints(max_length=200)] = ""
    """Who permitted tests where the host is somebody else's infrastructure, or another name of a host that is
    not in scope: content delivery, a firewall, a platform of many. A signed scope needs it then."""
    requests_per_second: float | None = Field(default=None, ge=0.01, le=10_000)
    """Most requests a second to it, instead of the profile's."""
    health_s: float | None = Field(default=None, ge=1, le=86_400)
    """Seconds between two looks at its health while it is tested. Left out: 30 where it is `critical`, 300
    where it is `non-production`, else 60."""

    @property
    def look_s(self) -> float:
        """Seconds between two looks at its health."""
        return self.health_s or {"critical": 30.0, "non-production": 300.0}.get(self.criticality, 60.0)

    def rate(self, usual: float) -> float:
        """Requests a second, where other hosts get `usual`."""
        if self.requests_per_second is not None:
            return self.requests_per_second
        return min(usual, 1.0) if self.criticality == "critical" else usual

    @model_validator(mode="after")
    def _permitted(self) -> Self:
        if self.criticality == "critical" and not self.approved:
            raise ValueError('criticality = "critical" needs approved = "who, and by what"')
        return self


OWN = HostSection(criticality="non-production")
"""This machine."""


@dataclass(frozen=True, slots=True)
class HostCare:
    """What hangs on each host: those that are `listed`, and every other."""

    listed: UrlList = NO_URLS
    hosts: Mapping[str, HostSection] = field(default_factory=dict)

    @classmethod
    def of(cls, hosts: Mapping[str, HostSection]) -> HostCare:
        """From the tables of a profile."""
        return cls(UrlList.of(hosts, site="", proxy=""), hosts)

    def at(self, url: str) -> HostSection:
        """What is known of the host of a URL."""
        if name := self.listed.match(url):
            return self.hosts[name]
        return OWN if is_loopback(host_of(url)) else HostSection()

    def bars(self, url: object) -> str:
        """Why nothing may be changed at a URL; "" when this does not forbid it, and for what is no URL."""
        if not isinstance(url, str) or not (host := host_of(url)):
            return ""
        one = self.at(url)
        if one.criticality == "critical":
            return f"{host} is critical: nothing is changed there"
        if one.criticality == "non-production" or one.approved:
            return ""
        what = "in production" if one.criticality == "production" else "unknown, so as if in production"
        return f'{host} is {what}: nothing is changed there without approved = "who, by what" in [hosts]'

    @property
    def untouched(self) -> tuple[str, ...]:
        """The listed hosts on which nothing is changed at any rung."""
        return tuple(
            name
            for name, one in self.hosts.items()
            if one.criticality == "critical" or not (one.approved or one.criticality == "non-production")
        )


NO_HOSTS = HostCare()


class ScheduleSection(Section):
    """When the platform may be tested. Outside, no run starts, and one in flight ends as `window_closed`."""

    zone: TimeZone = "UTC"
    """The IANA time zone of these times, such as `Europe/Berlin`."""
    windows: tuple[str, ...] = ()
    """Times on the zone's clock, such as `Mon-Fri 22:00-06:00`, `Sat,Sun 00:00-24:00` or `01:30-05:00`;
    the day is that of the beginning. Without any, every time is inside."""
    excluded: tuple[str, ...] = ()
    """Times without a test whatever the windows say: maintenance as in `windows`, or a freeze from one day of
    the zone to another, both of them included: `2026-12-20/2027-01-02`."""
    pauses: tuple[str, ...] = ()
    """Times as in `windows` at which a run in flight waits, with all that it has, and goes on afterwards;
    after four hours, or `escalation.minutes.person` where that is less, it ends as `window_closed`."""
    resume: Literal["person", "itself"] = "person"
    """How tests go on after an excluded time. `person`: the resident service sets STOP a minute before it,
    and somebody lets the fleet go on with `fleet resume --reason`. `itself`: they go on when it is over."""
    engagement: Literal["", "continuous", "recurring", "triggered"] = ""
    """How the tests go on: `continuous` always, `recurring` by the schedules of the personas, `triggered` by
    events. Each run is one cycle, with its id, begin, end, scope and findings."""
    renewed_days: int = Field(default=90, ge=1, le=366)
    """For how many days a signature of this scope counts; then it is signed again, or nothing runs."""
    not_before: datetime | date | None = None
    """The first moment of the tests."""
    not_after: datetime | date | None = None
    """The end of the tests; a date means its last moment."""

    @field_validator("windows", "pauses")
    @classmethod
    def _readable(cls, windows: tuple[str, ...]) -> tuple[str, ...]:
        for text in windows:
            _hours(text)
        return windows

    @field_validator("excluded")
    @classmethod
    def _excludable(cls, excluded: tuple[str, ...]) -> tuple[str, ...]:
        for text in excluded:
            if _freeze(text) is None:
                _hours(text)
        return excluded

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.begin and self.end and self.begin >= self.end:
            raise ValueError("not_after is not after not_before")
        return self

    @cached_property
    def begin(self) -> datetime | None:
        """`not_before`, in UTC."""
        return self._moment(self.not_before, timedelta())

    @property
    def freezes(self) -> list[tuple[date, date]]:
        """First and last day of each freeze."""
        return [found for text in self.excluded if (found := _freeze(text)) is not None]

    @property
    def end(self) -> datetime | None:
        """The first moment after the tests, in UTC."""
        return self._moment(self.not_after, timedelta(days=1))

    def _moment(self, at: datetime | date | None, day: timedelta) -> datetime | None:
        if at is None:
            return None
        if not isinstance(at, datetime):
            at = datetime.combine(at + day, time())
        return (at if at.tzinfo else at.replace(tzinfo=time_zone(self.zone))).astimezone(UTC)

    def is_open(self, now: datetime) -> bool:
        """Whether the platform may be tested at this moment (UTC)."""
        if (self.begin and now < self.begin) or (self.end and now >= self.end):
            return False
        local = now.astimezone(time_zone(self.zone))
        if any(begin <= local.date() <= end for begin, end in self.freezes):
            return False
        if any(_holds(_hours(text), local) for text in self.excluded if _freeze(text) is None):
            return False
        return not self.windows or any(_holds(_hours(text), local) for text in self.windows)

    def pause(self, now: datetime) -> str:
        """The time of `pauses` that is in force; "" outside of them."""
        local = now.astimezone(time_zone(self.zone))
        return next((text for text in self.pauses if _holds(_hours(text), local)), "")

    def maintenance(self, now: datetime) -> str:
        """The excluded time that is in force, or begins within a minute; "" outside of one."""
        zone = time_zone(self.zone)
        times = [now.astimezone(zone), (now + timedelta(minutes=1)).astimezone(zone)]
        for text in self.excluded:
            days = _freeze(text)
            if any(days[0] <= at.date() <= days[1] if days else _holds(_hours(text), at) for at in times):
                return text
        return ""

    def countdown(self, now: datetime) -> str:
        """That four fifths of the agreed time are over, or that the tests end within an hour, half an hour or
        five minutes; "" before that, and afterwards."""
        left = (self.end - now).total_seconds() / 60 if self.end else 0.0
        if self.end is None or left <= 0:
            return ""
        if left > WARNINGS_MIN[0]:
            late = self.begin is not None and now >= self.begin + MOSTLY * (self.end - self.begin)
            over = f"{MOSTLY:.0%} of the agreed time are over, until {iso(self.end)} (schedule.not_after)"
            return over if late else ""
        mark = min(one for one in WARNINGS_MIN if left <= one)
        return f"the tests end at {iso(self.end)} (schedule.not_after): in less than {mark} minutes"

    def closed(self, now: datetime) -> str:
        """Why the platform may not be tested now, with the next opening; "" when it may."""
        if self.is_open(now):
            return ""
        opens = self.changes(now)
        return f"outside the profile's testing windows: {f'next from {opens}' if opens else 'none is left'}"

    def watch(self, clock: Clock) -> Callable[[], str]:
        """`closed`, by a clock, for who asks again and again."""
        return lambda: self.closed(clock.now())

    def changes(self, now: datetime) -> str:
        """When the platform may next be tested, or no longer (ISO, UTC); "" when that does not change."""
        return _change(self, now.replace(second=0, microsecond=0), self.is_open(now))


@lru_cache(64)
def _change(schedule: ScheduleSection, minute: datetime, is_open: bool) -> str:
    zone, day = time_zone(schedule.zone), timedelta(days=1)
    thaws = [
        datetime.combine(end, time(), zone) + sign * day
        for begin, last in schedule.freezes
        for end, sign in ((begin, 0), (last, 1))
    ]
    frozen = {edge.astimezone(UTC) for edge in thaws}
    edges = {edge for edge in (schedule.begin, schedule.end, *frozen) if edge and edge > minute}
    weekly = [*schedule.windows, *(text for text in schedule.excluded if _freeze(text) is None)]
    marks = {0, *(mark % _DAY_MIN for text in weekly for mark in _hours(text)[1:])}
    first = max(minute, schedule.begin or minute)
    starts = [first, *(edge for edge in frozen if edge > first)]
    for count in range(_AHEAD_H * len(starts) if weekly else 0):
        hour = starts[count // _AHEAD_H] + timedelta(hours=count % _AHEAD_H)
        local, later = hour.astimezone(zone), (hour + timedelta(hours=1)).astimezone(zone)
        shown = local.hour * 60 + local.minute
        waits = {(mark - shown) % _DAY_MIN for mark in marks}
        if local.utcoffset() != later.utcoffset():  # the clocks change in this hour
            waits = set(range(60))
        edges |= {hour + timedelta(minutes=wait) for wait in waits if wait < 60}
    edges -= {minute}
    return next((iso(edge) for edge in sorted(edges) if schedule.is_open(edge) != is_open), "")


_FREEZE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:/(\d{4}-\d{2}-\d{2}))?", re.ASCII)


@lru_cache(256)
def _freeze(text: str) -> tuple[date, date] | None:
    """The first and the last day of a freeze; None for a window of the week."""
    if (found := _FREEZE.fullmatch(text)) is None:
        return None
    try:
        begin, end = date.fromisoformat(found[1]), date.fromisoformat(found[2] or found[1])
    except ValueError:
        raise ValueError(f"{text!r} is not a day, or two, such as 2026-12-20/2027-01-02") from None
    if end < begin:
        raise ValueError(f"{text!r} ends before it begins")
    return begin, end


Hours = tuple[frozenset[int], int, int]
"""Weekdays (Monday is 0) and minutes of the day; an end at or before the begin is on the next day."""


@lru_cache(256)
def _hours(text: str) -> Hours:
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a window: write `Mon-Fri 22:00-06:00` or `01:30-05:00`")
    days = set[int]()
    for part in (found["days"] or "Mon-Sun").split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last and last not in _DAYS):
            raise ValueError(f"{text!r}: the days are {', '.join(_DAYS)}")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        days |= {day % 7 for day in range(begin, end + 1 + 7 * (end < begin))}
    begin, end = (int(clock[:2]) * 60 + int(clock[3:]) for clock in (found["begin"], found["end"]))
    if begin == end:
        raise ValueError(f"{text!r} begins where it ends: write 00:00-24:00 for a whole day")
    return frozenset(days), begin, end


def _holds(hours: Hours, local: datetime) -> bool:
    days, begin, end = hours
    minute, today = local.hour * 60 + local.minute, local.weekday()
    if begin < end:
        return today in days and begin <= minute < end
    return (today in days and minute >= begin) or ((today - 1) % 7 in days and minute < end)
