"""What was seen and is not on the list yet: on its way to proof, log and list, or left unproven. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fleet.clock import iso
from fleet.findings.outage import WORD
from fleet.runs.proof.grades import needs_review
from fleet.severity import weight
from fleet.store.rows import CLOSING, HOLD, DecisionRow, FindingRow
from fleet.triage.items.decisions import STATES, fold
from fleet.triage.items.worklist import WorklistItem

SEEN = "seen, being proven"
"""What is said of a candidate from the moment it is seen."""
PROVEN = "proven, being posted"
HELD = "proven, held until the node answers"
WAITS = "proven, held until a person releases it: fleet items release"
POSTED = "posted, not read from the log yet"
BACK = timedelta(days=1)
"""How long a posted finding is looked for on a list that was read from another log meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnprovenCandidate:
    """One candidate; `runs` of them saw it and could not prove it, the last one because of `why`; `entry` is
    the index of its entry on the log, -1 without one."""

    fingerprint: str
    severity: str
    surface: str
    title: str
    persona: str
    run: str
    repro: str
    why: str
    at: str
    runs: int
    entry: int = -1


def unproven(
    rows: Iterable[FindingRow], decisions: Iterable[DecisionRow], now: datetime
) -> tuple[UnprovenCandidate, ...]:
    """Candidates whose latest run left them unproven, the gravest first; then the oldest.

    A driver's claim is not among them: it awaits a person, not another attempt. Neither is what a person
    dismissed or snoozed, until that ends.
    """
    hidden = _hidden(decisions, iso(now))
    last: dict[str, FindingRow] = {}
    runs: dict[str, int] = {}
    for row in rows:  # in the order in which they were found
        last[row.fingerprint] = row
        runs[row.fingerprint] = runs.get(row.fingerprint, 0) + (row.state == "unverified")
    left = [row for row in last.values() if row.state == "unverified" and not needs_review(row)]
    return _in_order(_of(row, runs[row.fingerprint]) for row in left if hidden.isdisjoint(row.names))


def proving(
    rows: Iterable[FindingRow], decisions: Iterable[DecisionRow], now: datetime
) -> tuple[UnprovenCandidate, ...]:
    """What runs have seen and the list may not have yet, the gravest first: being proven, being posted, or
    posted and not read. None is in `unproven`; outages are listed by themselves."""
    hidden, late = _hidden(decisions, iso(now)), iso(now - BACK)
    last = {
        row.fingerprint: row
        for row in rows  # a repeated one is in the outbox of another run
        if row.probe not in (CLOSING, WORD) and (row.state != "repeated" or row.index >= 0)
    }
    made = []
    for row in last.values():
        if not hidden.isdisjoint(row.names):
            continue
        if row.state in ("posted", "repeated") and row.at >= late:
            made.append(replace(_of(row, 1), why=POSTED, entry=row.index))
        elif row.state in ("confirmed", "posting"):
            made.append(replace(_of(row, 1), why=_waits(row)))
        elif row.state == "raised" and not needs_review(row):
            made.append(replace(_of(row, 1), why=SEEN))
    return _in_order(made)


def beside(
    left: Iterable[UnprovenCandidate], items: Iterable[WorklistItem], entries: int
) -> tuple[UnprovenCandidate, ...]:
    """Those that the list does not have, which was read up to so many entries of the log: an open item that
    is proven needs no second line."""
    if not (left := tuple(left)):
        return ()
    proven = (one for one in items if one.rank and one.proof == "confirmed")
    known = {name for one in proven for name in (one.fingerprint, *one.names)}
    return tuple(one for one in left if one.fingerprint not in known and not 0 <= one.entry < entries)


def _waits(row: FindingRow) -> str:
    """For what a proven finding waits."""
    if row.data.get("held"):
        return HELD
    return WAITS if row.data.get(HOLD) and row.state == "confirmed" else PROVEN


def _in_order(made: Iterable[UnprovenCandidate]) -> tuple[UnprovenCandidate, ...]:
    return tuple(sorted(made, key=lambda one: (-weight(one.severity), one.at, one.fingerprint)))


def _hidden(decisions: Iterable[DecisionRow], now: str) -> set[str]:
    standing = fold(decisions)
    last = {one.item: one for one in standing.all if one.kind in STATES}
    held = [one for one in last.values() if one.kind in ("dismiss", "snooze")]
    return {one.item for one in held if not one.until or one.until > now}


def _of(row: FindingRow, runs: int) -> UnprovenCandidate:
    return UnprovenCandidate(
        fingerprint=row.fingerprint,
        severity=row.severity,
        surface=row.surface,
        title=row.title,
        persona=row.persona,
        run=row.run_id,
        repro=row.repro,
        why=str(row.data.get("why", "")) or "its run ended before it was proven",
        at=row.at,
        runs=runs,
    )
