"""What to look at first, and why. Pure: the same reports in any order give the same list, byte for byte.

Proof comes before weight: unproven items rank below all proven ones, and strangers' items last. Within a tier
the score is severity x (1 + log2 recurrence) x surface x verification x age; recurrence counts our own runs
only. Equal scores are in order of severity, then of first sight (the oldest first); nothing that a stranger
writes is part of the order of ours.

Verification is the share of tries that confirmed it, where an item is flaky, else 1: its tier stands before
the score. Age is 1 + log2(1 + days open) / 16, at most a year's: a day 1.06, a month 1.31, a year 1.53.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from fleet.clock import YEAR_9999
from fleet.errors import ConfigError
from fleet.findings.reader import ParsedEntry
from fleet.findings.recurrence import Recurrence
from fleet.severity import UNKNOWN, WEIGHTS, weight
from fleet.text import counted
from fleet.triage.items.cluster import TIERS, Cluster, ReadReport, recurrence
from fleet.triage.items.life import Life
from fleet.triage.items.life_events import seconds
from fleet.triage.items.reports import ItemReports
from fleet.triage.items.worklist import ItemLink, ProofState, RankFactor

SURFACES: Mapping[str, float] = MappingProxyType(
    {"security": 5.0, "on-chain": 4.0, "compiler": 3.0, "ux": 2.0, "perf": 1.0}
)
"""Default weights if the triage persona has none; an unknown surface weighs as much as the lightest."""

AGE_DAYS = 365
"""From this age on an item weighs no more."""
_AGE = 16.0
_DAY_0 = date(1970, 1, 1).toordinal()


RankOrder: TypeAlias = tuple[int, float, float, int, int, str]
"""Tier, score and weight of the severity (negative), epoch and index of the first report, fingerprint: the
least is the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFacts:
    """What is known of an item besides the reports: figures (the larger of journal and log), its life, the
    severity that a person set and who did, and typed links to other items."""

    figures: Recurrence | None = None
    days: int = 0
    figures_by: str = "log"
    life: Life | None = None
    severity: str = ""
    severity_by: str = ""
    links: tuple[ItemLink, ...] = ()


@dataclass(slots=True, kw_only=True)
class RankedCluster:
    """One item with everything that its place depends on."""

    cluster: Cluster
    facts: ItemFacts
    lead: ReadReport
    entry: ParsedEntry
    proof: ProofState
    severity: str
    count: int
    counted_by: str
    surface_by: str
    first: ReadReport
    """The first report that counts: a stranger cannot predate us."""
    days: int
    numbers: tuple[float, float, float, float, float]
    """The factors: severity, recurrence, surface, verification, age."""
    score: float
    last: int

    @property
    def order(self) -> RankOrder:
        """Where it stands, among its like: best first."""
        first, weight = self.first, WEIGHTS[self.severity]
        tier = TIERS.index(self.proof)
        return tier, -self.score, -weight, first.epoch, first.index, self.cluster.fingerprint

    @property
    def factors(self) -> tuple[RankFactor, ...]:
        """The factors in words, and who set them."""
        severity, recurrence, surface, verification, age = self.numbers
        what = "run" if self.proof != "untrusted" else "sender"
        return (
            _factor("severity", self.severity, severity, self.facts.severity_by or "log"),
            _factor("recurrence", counted(self.count, what), recurrence, self.counted_by),
            _factor("surface", self.entry.surface, surface, self.surface_by),
            _factor("verification", self.proof, verification, "log"),
            _factor("age", f"open {counted(self.days, 'day')}", age, "log"),
        )


@lru_cache(maxsize=4_096, typed=True)
def _factor(name: str, value: str, factor: float, by: str) -> RankFactor:
    """One value for all items that have it: most factors of a long list are the same few."""
    return RankFactor(name, value, factor, by)


def checked(weights: Mapping[str, float]) -> Mapping[str, float]:
    """The weights of the surfaces; ConfigError for one that is not a positive number."""
    for surface, number in weights.items():
        if not (math.isfinite(number) and number > 0):
            remedy = "correct the weights of the triage persona"
            raise ConfigError(f"weights.{surface}: must be a positive number", remedy=remedy)
    return weights or SURFACES


def judge(
    item: Cluster,
    weights: Mapping[str, float],
    facts: ItemFacts,
    day: date | None = None,
) -> RankedCluster:
    """How an item ranks. Of its reports only those of the best proof say what it is."""
    reports = item.reports
    said = {(one.proof, one.severity) for one in reports}
    proof = best_of({one for one, _ in said})
    best = [one for one in reports if one.proof == proof]
    strangers = proof == "untrusted"
    kept = [one for one in best if one.text] or best
    lead = kept[0] if strangers else max(kept, key=lambda one: weight(one.severity))
    entry = lead.entry
    severity = facts.severity or _gravest(name for one, name in said if one == proof)
    count = recurrence(reports) if item.resolved_at else item.runs or 1
    first = next(one for one in reports if one.trusted or strangers)
    last = max([one.at for one in reports if one.trusted or strangers])
    by = "log"
    if facts.figures is not None and not strangers:
        if facts.figures.runs > count:
            count, by = facts.figures.runs, facts.figures_by
        last = max(last, seconds(facts.figures.last))
    days = _open_days(first, day)
    numbers = _numbers(severity, count, entry, proof, days, weights)
    return RankedCluster(
        cluster=item,
        facts=facts,
        lead=lead,
        entry=entry,
        proof=proof,
        severity=severity,
        count=count,
        counted_by=by,
        surface_by="persona weights" if entry.surface in weights else "lightest of the persona weights",
        first=first,
        days=days,
        numbers=numbers,
        score=_score(numbers),
        last=last,
    )


def reported_order(item: ItemReports, weights: Mapping[str, float], day: date) -> RankOrder | None:
    """The `order` of an item of which only our reports are known, from what is counted of them already; None
    where `judge` has to look at the reports."""
    if not item.reports:
        return None
    lead = item.leads[best_of(item.leads)]
    if not lead.text:
        return None
    proof, first = lead.proof, item.reports[0]
    severity = _gravest(name for (one, name), count in item.said.items() if count and one == proof)
    numbers = _numbers(severity, len(item.runs), lead.entry, proof, _open_days(first, day), weights)
    return TIERS.index(proof), -_score(numbers), -numbers[0], first.epoch, first.index, item.fingerprint


def _gravest(names: Iterable[str]) -> str:
    return max([name if name in WEIGHTS else UNKNOWN for name in names], key=WEIGHTS.__getitem__)


def _open_days(first: ReadReport, day: date | None) -> int:
    return 0 if day is None else min(max(day.toordinal() - day_of(first.at), 0), AGE_DAYS)


def _numbers(
    severity: str, count: int, entry: ParsedEntry, proof: ProofState, days: int, weights: Mapping[str, float]
) -> tuple[float, float, float, float, float]:
    rate = entry.rate if proof == "flaky" else None
    surface = weights.get(entry.surface)
    return (
        WEIGHTS[severity],
        1 + math.log2(count),
        min(weights.values()) if surface is None else surface,
        rate[0] / rate[1] if rate and rate[0] else 1.0,
        1 + math.log2(1 + days) / _AGE,
    )


def _score(numbers: tuple[float, ...]) -> float:
    return round(math.prod(numbers), 3)


def best_proof(reports: Iterable[ReadReport]) -> ProofState:
    """The best tier that any of them reaches."""
    return best_of({report.proof for report in reports})


def best_of(proofs: Container[ProofState]) -> ProofState:
    """The best tier of these."""
    return next(tier for tier in TIERS if tier in proofs)


def day_of(at: int) -> int:
    """The day (UTC) of Unix seconds, as `date.toordinal` counts; of hostile ones the nearest."""
    return max(0, min(at, YEAR_9999)) // 86_400 + _DAY_0
