"""What to look at first, and why. Pure: the same reports in any order give the same list, byte for byte.

Proof comes before weight: unproven items rank below all proven ones, and strangers' items last. Within a tier
the score is severity x (1 + log2 recurrence) x surface x verification x age; recurrence counts our own runs
only. Equal scores are in order of first sight; nothing that a stranger writes is part of the order of ours.

Verification is the share of tries that confirmed it, where an item is flaky, else 1: its tier stands before
the score. Age is 1 + log2(1 + days open) / 16, at most a year's: a day 1.06, a month 1.31, a year 1.53.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from types import MappingProxyType

from fleet.clock import YEAR_9999, iso_seconds
from fleet.errors import ConfigError
from fleet.findings.reader import ParsedEntry
from fleet.findings.recurrence import Recurrence
from fleet.findings.repro import write_repro
from fleet.text import counted, line
from fleet.triage.cluster import TIERS, Cluster, ReadReport, recurrence
from fleet.triage.life import ItemState, Life
from fleet.triage.worklist import ItemLink, ProofState, RankFactor, WorklistItem

SEVERITIES: Mapping[str, float] = MappingProxyType(
    {"critical": 8.0, "high": 4.0, "medium": 2.0, "low": 1.0, "info": 0.5, "unknown": 0.25}
)
SURFACES: Mapping[str, float] = MappingProxyType(
    {"security": 5.0, "on-chain": 4.0, "compiler": 3.0, "ux": 2.0, "perf": 1.0}
)
"""Default weights if the triage persona has none; an unknown surface weighs as much as the lightest."""

SENDERS_SHOWN = 8
AGE_DAYS = 365
"""From this age on an item weighs no more."""
_AGE = 16.0
_BEGIN: Mapping[ProofState, ItemState] = MappingProxyType(
    {
        "verified": "confirmed",
        "flaky": "flaky",
        "unverified": "new",
        "needs-repro": "needs-repro",
        "untrusted": "new",
    }
)
_DAY_0 = date(1970, 1, 1).toordinal()


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
    def order(self) -> tuple[int, float, int, int, str]:
        """Where it stands, among its like: best first."""
        first = self.first
        return TIERS.index(self.proof), -self.score, first.epoch, first.index, self.cluster.fingerprint

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
    for surface, weight in weights.items():
        if not (math.isfinite(weight) and weight > 0):
            remedy = "correct the weights of the triage persona"
            raise ConfigError(f"weights.{surface}: must be a positive number", remedy=remedy)
    return weights or SURFACES


def rank(
    clusters: Iterable[Cluster],
    weights: Mapping[str, float] = SURFACES,
    facts: Mapping[str, ItemFacts] = MappingProxyType({}),
    *,
    day: date | None = None,
) -> tuple[WorklistItem, ...]:
    """The worklist, best first; ConfigError for a bad weight. `facts` are by fingerprint; `day` is the date
    of this pass, without one every item is new."""
    weights, none = checked(weights), ItemFacts()
    judged = [judge(one, weights, facts.get(one.fingerprint, none), day) for one in clusters]
    return tuple(item_of(one, at) for at, one in enumerate(sorted(judged, key=lambda one: one.order), 1))


def judge(
    item: Cluster,
    weights: Mapping[str, float],
    facts: ItemFacts,
    day: date | None = None,
    known: tuple[str, ParsedEntry] | None = None,
) -> RankedCluster:
    """How an item ranks. Of its reports only those of the best proof say what it is.

    `known` is a text that was read before: often the leading one.
    """
    reports = item.reports
    said = {(one.proof, one.severity) for one in reports}
    proof = next(tier for tier in TIERS if any(tier == one for one, _ in said))
    lead = next((one for one in reports if one.proof == proof and one.text), None)
    lead = lead or next(one for one in reports if one.proof == proof)
    entry = known[1] if known is not None and known[0] == lead.text else lead.entry
    named = [name if name in SEVERITIES else "unknown" for one, name in said if one == proof]
    severity = facts.severity or max(named, key=SEVERITIES.__getitem__)
    count = recurrence(reports) if item.resolved_at else len(item.runs) or 1
    strangers = proof == "untrusted"
    first = next(one for one in reports if one.trusted or strangers)
    last = max([one.at for one in reports if one.trusted or strangers])
    by = "log"
    if facts.figures is not None and not strangers:
        if facts.figures.runs > count:
            count, by = facts.figures.runs, facts.figures_by
        last = max(last, seconds(facts.figures.last))
    days = 0 if day is None else min(max(day.toordinal() - _day(first.at), 0), AGE_DAYS)
    rate = entry.rate if proof == "flaky" else None
    surface = weights.get(entry.surface)
    numbers = (
        SEVERITIES[severity],
        1 + math.log2(count),
        min(weights.values()) if surface is None else surface,
        rate[0] / rate[1] if rate and rate[0] else 1.0,
        1 + math.log2(1 + days) / _AGE,
    )
    return RankedCluster(
        cluster=item,
        facts=facts,
        lead=lead,
        entry=entry,
        proof=proof,
        severity=severity,
        count=count,
        counted_by=by,
        surface_by="lightest of the persona weights" if surface is None else "persona weights",
        first=first,
        days=days,
        numbers=numbers,
        score=round(math.prod(numbers), 3),
        last=last,
    )


def best_proof(reports: Iterable[ReadReport]) -> ProofState:
    """The best tier that any of them reaches."""
    found = {report.proof for report in reports}
    return next(tier for tier in TIERS if tier in found)


def echoed(reports: Collection[ReadReport]) -> bool:
    """Whether a stranger also reports it; for a stranger's item, a second stranger. Shown, never ranked."""
    trusted = any(report.trusted for report in reports)
    return len({report.sender for report in reports if not report.trusted}) > (0 if trusted else 1)


def item_of(one: RankedCluster, place: int) -> WorklistItem:
    """The item as it is listed, at this place."""
    entry, reports, first = one.entry, one.cluster.reports, one.first
    trusted, facts = one.proof != "untrusted", one.facts
    own = [report for report in reports if report.trusted == trusted]
    senders = sorted({line(sender, 64) for sender in {report.sender for report in own}})
    back = bool(one.cluster.resolved_at)
    life = facts.life or Life(_BEGIN[one.proof], iso_seconds(first.at))
    figures, factors = facts.figures if trusted else None, one.factors
    days = {_day(report.at) for report in own}
    return WorklistItem(
        rank=place,
        fingerprint=one.cluster.fingerprint,
        severity=one.severity,
        surface=entry.surface,
        title=entry.title,
        count=one.count,
        verified=one.proof == "verified",
        repro=write_repro(entry.repro) if trusted and entry.repro else "",
        evidence=entry.ev if trusted else "",
        score=one.score,
        why=_why(one, factors),
        first_seen=iso_seconds(first.at),
        last_seen=iso_seconds(one.last),
        senders=tuple(senders[:SENDERS_SHOWN]),
        trusted=trusted,
        proof=one.proof,
        state=life.state,
        regression=back,
        resolved_at=iso_seconds(one.cluster.resolved_at) if back else "",
        since=life.since,
        until=life.until,
        reason=life.reason,
        stuck=life.stuck,
        stale=life.stale,
        looked=figures.looked if figures else "",
        days=max(len(days), facts.days if trusted else 0),
        entry=one.lead.index,
        epoch=one.lead.epoch,
        source=entry.source,
        names=tuple(sorted(one.cluster.keys)),
        severity_by=facts.severity_by,
        stages=life.stages,
        factors=factors,
        links=facts.links,
    )


def _why(one: RankedCluster, factors: tuple[RankFactor, ...]) -> str:
    severity, seen, surface, verified, age = factors
    who = f" (set by {severity.by})" if one.facts.severity_by else ""
    parts = [f"{severity.value} {severity.factor:g}{who}", f"{seen.value} {seen.factor:.3g}"]
    parts.append(f"{surface.value} {surface.factor:g}")
    if verified.factor != 1:
        parts.append(f"{verified.value} {verified.factor:.3g}")
    if age.factor != 1:
        parts.append(f"{age.value} {age.factor:.3g}")
    parts = [f"{' x '.join(parts)} = {one.score:g}"]
    rate = one.entry.rate
    confirmed = f"{rate[0]} of {rate[1]}" if rate else ""
    parts.append(
        {
            "verified": f"confirmed {confirmed} in fresh jails",
            "flaky": f"flaky: confirmed {confirmed}",
            "unverified": "has an unconfirmed repro, so below everything proven",
            "needs-repro": "no runnable repro, so below everything proven",
            "untrusted": "from strangers: their severity is a claim and their repro is withheld",
        }[one.proof]
    )
    if echoed(one.cluster.reports):
        untrusted = one.proof == "untrusted"
        parts.append("other strangers report it too" if untrusted else "a stranger reports it too")
    if one.cluster.resolved_at:
        first = iso_seconds(one.first.at)
        parts.append(f"regression: resolved {iso_seconds(one.cluster.resolved_at)}, reported again {first}")
    return "; ".join(parts)


def seconds(at: str) -> int:
    """Unix seconds of an ISO time; 0 for none."""
    return int(datetime.fromisoformat(at).timestamp()) if at else 0


def _day(at: int) -> int:
    """The day (UTC) of Unix seconds, as `date.toordinal` counts; of hostile ones the nearest."""
    return max(0, min(at, YEAR_9999)) // 86_400 + _DAY_0
