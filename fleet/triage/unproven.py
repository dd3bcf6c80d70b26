"""Grave findings that were seen but not proven yet: shown separately, and retried soon. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fleet.store.rows import FindingRow

GRAVE = frozenset({"critical", "high"})


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


def unproven(rows: Iterable[FindingRow]) -> tuple[UnprovenCandidate, ...]:
    """Candidates whose latest run left them unproven, the gravest first.

    A driver's claim is not among them: it awaits a person, not another attempt.
    """
    last: dict[str, FindingRow] = {}
    runs: dict[str, int] = {}
    for row in rows:  # in the order in which they were found
        last[row.fingerprint] = row
        runs[row.fingerprint] = runs.get(row.fingerprint, 0) + (row.state == "unverified")
    left = [row for row in last.values() if row.state == "unverified" and row.severity in GRAVE]
    made = [_of(row, runs[row.fingerprint]) for row in left if "claim" not in row.data]
    return tuple(sorted(made, key=lambda one: (one.severity != "critical", one.at, one.fingerprint)))


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
