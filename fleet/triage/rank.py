"""What to look at first, and why. Pure: the same reports in any order give the same list, byte for byte.

Proof comes before weight: unproven items rank below all proven ones, and strangers' items last. Within a tier
the score is severity x (1 + log2 recurrence) x surface, where recurrence counts our own runs only. Equal
scores go to items that a stranger reports as well, then to the first seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from fleet.clock import iso
from fleet.errors import ConfigError
from fleet.findings.recurrence import Recurrence
from fleet.findings.repro import write_repro
from fleet.text import line
from fleet.triage.cluster import Cluster, ReadReport
from fleet.triage.worklist import State, WorklistItem

SEVERITIES: Mapping[str, float] = MappingProxyType(
    {"critical": 8.0, "high": 4.0, "medium": 2.0, "low": 1.0, "info": 0.5, "unknown": 0.25}
)
SURFACES: Mapping[str, float] = MappingProxyType(
    {"security": 5.0, "on-chain": 4.0, "compiler": 3.0, "ux": 2.0, "perf": 1.0}
)
"""Default weights if the triage persona has none; an unknown surface weighs as much as the lightest."""

TRIES = 3
"""Verified means confirmed in every one of at least this many fresh jails."""

SENDERS_SHOWN = 8
_TIERS: tuple[State, ...] = ("verified", "flaky", "unverified", "needs-repro", "untrusted")
_YEAR_9999 = 253_402_300_799


@dataclass(frozen=True, slots=True)
class _RankedCluster:
    cluster: Cluster
    lead: ReadReport
    state: State
    severity: str
    count: int
    weight: float
    score: float
    last: int


def rank(
    clusters: Iterable[Cluster],
    weights: Mapping[str, float] = SURFACES,
    seen: Mapping[str, Recurrence] = MappingProxyType({}),
) -> tuple[WorklistItem, ...]:
    """The worklist, best first; ConfigError for a weight that is not a positive number.

    `seen` are the figures of items by fingerprint: sightings that are not on the log count as well.
    """
    weights = weights or SURFACES
    for surface, weight in weights.items():
        if not (math.isfinite(weight) and weight > 0):
            remedy = "correct the weights of the triage persona"
            raise ConfigError(f"weights.{surface}: must be a positive number", remedy=remedy)
    judged = sorted((_judge(item, weights, seen.get(item.fingerprint)) for item in clusters), key=_order)
    return tuple(_item(place, one) for place, one in enumerate(judged, 1))


def state_of(report: ReadReport) -> State:
    """How well one report is proven. Only a trusted sender's canonical entry with a repro can be proven."""
    entry = report.entry
    if not report.trusted:
        return "untrusted"
    if not (entry.repro_state == "calls" or (entry.repro_state == "evidence" and entry.ev)):
        return "needs-repro"
    if entry.grammar != "canonical" or entry.rate is None or entry.rate[0] == 0:
        return "unverified"
    return "verified" if entry.rate[0] == entry.rate[1] >= TRIES else "flaky"


def _judge(item: Cluster, weights: Mapping[str, float], seen: Recurrence | None) -> _RankedCluster:
    state = min((state_of(report) for report in item.reports), key=_TIERS.index)
    basis = [report for report in item.reports if state_of(report) == state]
    named = (report.entry.severity for report in basis)
    severity = max((name if name in SEVERITIES else "unknown" for name in named), key=SEVERITIES.__getitem__)
    count = recurrence(item.reports)
    last = max((report.at for report in item.reports if report.trusted or state == "untrusted"), default=0)
    if seen is not None and state != "untrusted":
        count, last = max(count, seen.runs), max(last, _seconds(seen.last))
    weight = weights.get(basis[0].entry.surface, min(weights.values()))
    score = SEVERITIES[severity] * (1 + math.log2(count)) * weight
    return _RankedCluster(item, basis[0], state, severity, count, weight, round(score, 3), last)


def recurrence(reports: Sequence[ReadReport]) -> int:
    """Distinct runs of trusted senders; 1 for what only strangers report, regardless of their number."""
    return len({(report.sender, report.run) for report in reports if report.trusted}) or 1


def echoed(reports: Sequence[ReadReport]) -> bool:
    """Whether a stranger also reports it; for a stranger's item, a second stranger."""
    trusted = any(report.trusted for report in reports)
    return len({report.sender for report in reports if not report.trusted}) > (0 if trusted else 1)


def _order(one: _RankedCluster) -> tuple[int, float, bool, int, int, str]:
    first, alone = _first(one), not echoed(one.cluster.reports)
    return _TIERS.index(one.state), -one.score, alone, first.epoch, first.index, one.cluster.fingerprint


def _first(one: _RankedCluster) -> ReadReport:
    """The first report that counts: a stranger cannot predate us."""
    trusted = one.state != "untrusted"
    return next(report for report in one.cluster.reports if report.trusted or not trusted)


def _item(place: int, one: _RankedCluster) -> WorklistItem:
    entry, reports, first = one.lead.entry, one.cluster.reports, _first(one)
    trusted = one.state != "untrusted"
    senders = sorted({line(report.sender, 64) for report in reports if report.trusted == trusted})
    return WorklistItem(
        rank=place,
        fingerprint=one.cluster.fingerprint,
        severity=one.severity,
        surface=entry.surface,
        title=entry.title,
        count=one.count,
        verified=one.state == "verified",
        repro=write_repro(entry.repro) if trusted and entry.repro else "",
        evidence=entry.ev if trusted else "",
        score=one.score,
        why=_why(one),
        first_seen=_date(first.at),
        last_seen=_date(one.last),
        senders=tuple(senders[:SENDERS_SHOWN]),
        trusted=trusted,
        state=one.state,
        regression=bool(one.cluster.resolved_at),
        resolved_at=_date(one.cluster.resolved_at) if one.cluster.resolved_at else "",
    )


def _why(one: _RankedCluster) -> str:
    what = "run" if one.state != "untrusted" else "sender"
    seen = f"{one.count} {what}{'' if one.count == 1 else 's'} {1 + math.log2(one.count):.3g}"
    severity = f"{one.severity} {SEVERITIES[one.severity]:g}"
    parts = [f"{severity} x {seen} x {one.lead.entry.surface} {one.weight:g} = {one.score:g}"]
    rate = one.lead.entry.rate
    confirmed = f"{rate[0]} of {rate[1]}" if rate else ""
    parts.append(
        {
            "verified": f"confirmed {confirmed} in fresh jails",
            "flaky": f"flaky: confirmed {confirmed}",
            "unverified": "has an unconfirmed repro, so below everything proven",
            "needs-repro": "no runnable repro, so below everything proven",
            "untrusted": "from strangers: their severity is a claim and their repro is withheld",
        }[one.state]
    )
    if echoed(one.cluster.reports):
        parts.append(
            "other strangers report it too" if one.state == "untrusted" else "a stranger reports it too"
        )
    if one.cluster.resolved_at:
        first = _date(_first(one).at)
        parts.append(f"regression: resolved {_date(one.cluster.resolved_at)}, reported again {first}")
    return "; ".join(parts)


def _seconds(at: str) -> int:
    """Unix seconds of an ISO time; 0 for none."""
    return int(datetime.fromisoformat(at).timestamp()) if at else 0


def _date(seconds: int) -> str:
    return iso(datetime.fromtimestamp(max(0, min(seconds, _YEAR_9999)), UTC))
