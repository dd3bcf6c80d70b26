"""What happened to an item, in order: reports, looks, records and decisions. Pure.

Entries of the log are ordered by index, records among them. Everything else is ordered by time and comes
after the entries of the same second. The chain's clock may be ahead of ours, so that something of ours also
comes after a record that is older by our clock, and after the report of a run that had seen the item by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Literal, Protocol

from fleet.clock import iso, iso_seconds
from fleet.findings.reader import ParsedEntry
from fleet.findings.records import ItemRecord
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow

EventKind = Literal[
    "reported", "shown", "clean", "proposed", "needs-repro", "fixed", "reopen", "dismiss", "snooze", "end"
]
_MACHINES: dict[str, EventKind] = {
    "verified-fixed": "clean",
    "proposed": "proposed",
    "needs-repro": "needs-repro",
}


class ItemReport(Protocol):
    """One entry of the log about the item; `at` in Unix seconds."""

    @property
    def epoch(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def at(self) -> int: ...
    @property
    def trusted(self) -> bool: ...
    @property
    def source(self) -> str: ...
    @property
    def entry(self) -> ParsedEntry: ...


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """`at` is what is shown (ISO); `until` the end of a dismissal or snooze."""

    kind: EventKind
    at: str
    by: str = ""
    reason: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class _Placed:
    """An event of the log; `order` is its time in Unix seconds, never before that of an earlier entry."""

    event: LifeEvent
    order: int
    run: str = ""


_PLACE = attrgetter("epoch", "index")


def counted(reports: Sequence[ItemReport]) -> list[ItemReport]:
    """The reports that move the item, in log order: ours; strangers' only where there are none of ours."""
    ours = [one for one in reports if one.trusted] or list(reports)
    return sorted(ours, key=_PLACE)


def events(
    reports: Sequence[ItemReport],
    figures: Recurrence,
    records: Sequence[ItemRecord],
    decisions: Sequence[DecisionRow],
    now: datetime,
) -> list[LifeEvent]:
    """All that happened until `now`, the earliest first; `decisions` are those that stand.

    Of reports with nothing between them only the first and the latest are shown.
    """
    if not (records or decisions or figures.last or figures.clean_at):
        found = counted(reports)
        ends = (found[0], max(found, key=attrgetter("at"))) if len(found) > 1 else found
        return [_reported(one) for one in ends]
    placed = _log(reports, records, decisions)
    on_log = {one.name for one in records if one.index >= 0}
    loose = [_decided(one) for one in decisions if one.name not in on_log]
    loose += [_recorded(one) for one in records if one.index < 0 and one.kind in _MACHINES]
    if figures.last:
        loose.append(LifeEvent("shown", figures.last, _by_run(figures.run)))
    cleaned = (figures.cleaned_at, figures.cleaned_run, "")
    for at, run, why in (cleaned, (figures.clean_at, figures.clean_run, figures.clean_why)):
        if at and not any(one.event.kind == "clean" and one.event.at == at for one in placed):
            loose.append(LifeEvent("clean", at, _by_run(run), why))
    for one in decisions:
        if one.until and one.until <= iso(now):
            loose.append(LifeEvent("end", one.until, "its end", until=one.until))
    ordered = [(one.order, 0, one.event) for one in placed]
    for event in sorted(loose, key=lambda one: one.at):
        before_clean = event.kind == "shown" and figures.clean_at  # a sighting after it would have ended it
        ordered.append((_order(event, placed, figures), -1 if before_clean else 1, event))
    told = [event for _, _, event in sorted(ordered, key=lambda one: one[:2])]
    first = next((n for n, one in enumerate(told) if one.kind == "reported"), 0)
    return [one for n, one in enumerate(told) if n >= first or one.kind != "shown"]


def _log(
    reports: Sequence[ItemReport], records: Sequence[ItemRecord], decisions: Sequence[DecisionRow]
) -> list[_Placed]:
    found = [((one.epoch, one.index), one.at, _reported(one), one.entry.run) for one in counted(reports)]
    stand = {one.name: one for one in decisions}
    for record in records:
        if record.index < 0:
            continue
        place = (record.epoch, record.index)
        if record.kind in _MACHINES:
            found.append((place, seconds(record.at), _recorded(record), ""))
        elif record.name in stand:
            event = _decided(stand.pop(record.name))  # the first of several entries of one decision
            found.append((place, seconds(record.at), event, ""))
    made: list[_Placed] = []
    for _, at, event, run in sorted(found, key=lambda one: one[0]):
        made.append(_Placed(event, max(at, made[-1].order if made else at), run))
    return made


def _order(event: LifeEvent, placed: Sequence[_Placed], figures: Recurrence) -> int:
    """Where something that is not on the log belongs among the entries, in Unix seconds."""
    told = figures.last <= event.at and event.kind != "shown"
    runs = {figures.opened, figures.run} - {""} if told else set()
    later = figures.clean_at if event.kind == "shown" else ""
    back = event.at == figures.cleaned_at or (event.kind == "shown" and figures.cleaned_at and not later)
    since = {figures.opened, figures.run}
    before = [
        one.order
        for one in placed
        if (
            one.event.at <= event.at
            if one.event.kind != "reported"
            else one.run in runs or (back and one.run not in since)
        )
        and not (later and one.event.kind == "clean" and one.event.at == later)
    ]
    return max([seconds(event.at), *before])


def _reported(report: ItemReport) -> LifeEvent:
    return LifeEvent(
        "reported", iso_seconds(report.at), (report.source or "a note") if report.trusted else "a stranger"
    )


def _recorded(record: ItemRecord) -> LifeEvent:
    by = _by_run(record.who) if record.kind == "verified-fixed" else record.who
    return LifeEvent(_MACHINES[record.kind], record.at, by, record.reason)


def _decided(one: DecisionRow) -> LifeEvent:
    assert one.kind in ("fixed", "reopen", "dismiss", "snooze")
    return LifeEvent(one.kind, one.at, one.who, one.reason, one.until)


def _by_run(run: str) -> str:
    return f"run {run}" if run else ""


def seconds(at: str) -> int:
    """Unix seconds of an ISO time; 0 for none."""
    return int(datetime.fromisoformat(at).timestamp()) if at else 0
