"""What was seen and is not proven: candidates in their proof, and grave ones without a proof. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.clock import iso
from fleet.findings.severity import GRAVE, weight
from fleet.store.rows import DecisionRow, FindingRow
from fleet.triage.items.decisions import STATES, fold
from fleet.triage.items.worklist import WorklistItem

SEEN = "seen, being proven"
"""What is said of a candidate from the moment it is seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnprovenCandidate:
    """One candidate; `runs` of them saw it and could not prove it, the last one because of `why`."""

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


def unproven(
    rows: Iterable[FindingRow], decisions: Iterable[DecisionRow], now: datetime
) -> tuple[UnprovenCandidate, ...]:
    """Candidates whose latest run left them unproven, the gravest first.

    A driver's claim is not among them: it awaits a person, not another attempt. Neither is what a person
    dismissed or snoozed, until that ends.
    """
    hidden = _hidden(decisions, iso(now))
    last: dict[str, FindingRow] = {}
    runs: dict[str, int] = {}
    for row in rows:  # in the order in which they were found
        last[row.fingerprint] = row
        runs[row.fingerprint] = runs.get(row.fingerprint, 0) + (row.state == "unverified")
    left = [row for row in last.values() if row.state == "unverified" and row.severity in GRAVE]
    left = [row for row in left if "claim" not in row.data and row.fingerprint not in hidden]
    made = [_of(row, runs[row.fingerprint]) for row in left]
    return tuple(sorted(made, key=lambda one: (-weight(one.severity), one.at, one.fingerprint)))


def proving(
    rows: Iterable[FindingRow], decisions: Iterable[DecisionRow], now: datetime
) -> tuple[UnprovenCandidate, ...]:
    """Candidates that a run has seen and is about to prove, the gravest first; none is in `unproven`."""
    hidden = _hidden(decisions, iso(now))
    last = {row.fingerprint: row for row in rows}
    seen = [row for row in last.values() if row.state == "raised" and "claim" not in row.data]
    made = [replace(_of(row, 1), why=SEEN) for row in seen if row.fingerprint not in hidden]
    return tuple(sorted(made, key=lambda one: (-weight(one.severity), one.at, one.fingerprint)))


def beside(left: Iterable[UnprovenCandidate], items: Iterable[WorklistItem]) -> tuple[UnprovenCandidate, ...]:
    """Those that the list does not have: an open item that is proven needs no second line."""
    proven = (one for one in items if one.rank and one.proof == "verified")
    known = {name for one in proven for name in (one.fingerprint, *one.names)}
    return tuple(one for one in left if one.fingerprint not in known)


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
