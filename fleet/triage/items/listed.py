"""A ranked item as it is listed: in words, with the reason of its place. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fleet.clock import iso_seconds
from fleet.findings.instances import MOST, Instance, merged, minute
from fleet.findings.outage import shown
from fleet.findings.reader import ParsedEntry, read
from fleet.findings.repro import write_repro
from fleet.oracles.place import met_at
from fleet.text import line
from fleet.triage.items.cluster import ReadReport
from fleet.triage.items.life import BEGIN, Life
from fleet.triage.items.rank import RankedCluster, day_of
from fleet.triage.items.worklist import RankFactor, WorklistItem

SENDERS_SHOWN = 8


def echoed(reports: Collection[ReadReport]) -> bool:
    """Whether a stranger also reports it; for a stranger's item, a second stranger. Shown, never ranked."""
    trusted = any(report.trusted for report in reports)
    return len({report.sender for report in reports if not report.trusted}) > (0 if trusted else 1)


def item_of(one: RankedCluster, place: int, life: Life | None = None) -> WorklistItem:
    """The item as it is listed, at this place."""
    entry, reports, first = one.entry, one.cluster.reports, one.first
    trusted, facts = one.proof != "untrusted", one.facts
    own = [report for report in reports if report.trusted == trusted]
    senders = sorted({line(report.sender, 64) for report in own})
    back = bool(one.cluster.resolved_at)
    life = life or facts.life or Life(BEGIN[one.proof], iso_seconds(first.at))
    figures, factors = facts.figures if trusted else None, one.factors
    days = {day_of(report.at) for report in own}
    also, more = _also(own, entry) if trusted else ((), 0)
    return WorklistItem(
        rank=place,
        fingerprint=one.cluster.fingerprint,
        severity=one.severity,
        surface=entry.surface,
        title=shown(entry.title) if trusted else entry.title,
        count=one.count,
        confirmed=one.proof == "confirmed",
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
        also=also,
        more=more,
        severity_by=facts.severity_by,
        stages=life.stages,
        factors=factors,
        links=facts.links,
    )


def _also(reports: Iterable[ReadReport], lead: ParsedEntry) -> tuple[tuple[Instance, ...], int]:
    """Where else the entries of an item have it: their own places, and those that they list."""
    found: list[Instance] = []
    more, here = lead.more, _met_at(lead)
    for report in reports:
        if report.parsed is lead:
            found += lead.also
        elif report.text:
            entry, at = read(report.text), minute(iso_seconds(report.at))
            found += (*entry.also, Instance(_met_at(entry), 1, at, at))
            more = max(more, entry.more)
    known = [one for name, one in merged(found).items() if name not in ("", here)]
    return tuple(known[:MOST]), more + max(0, len(known) - MOST)


def _met_at(entry: ParsedEntry) -> str:
    return met_at(entry.repro[-1].tool, entry.repro[-1].args) if entry.repro else ""


def _why(one: RankedCluster, factors: tuple[RankFactor, ...]) -> str:
    severity, seen, surface, proof, age = factors
    who = f" (set by {severity.by})" if one.facts.severity_by else ""
    parts = [f"{severity.value} {severity.factor:g}{who}", f"{seen.value} {seen.factor:.3g}"]
    parts.append(f"{surface.value} {surface.factor:g}")
    if proof.factor != 1:
        parts.append(f"{proof.value} {proof.factor:.3g}")
    if age.factor != 1:
        parts.append(f"{age.value} {age.factor:.3g}")
    parts = [f"{' x '.join(parts)} = {one.score:g}"]
    rate = one.entry.rate
    confirmed = f"{rate[0]} of {rate[1]}" if rate else ""
    parts.append(
        {
            "confirmed": f"confirmed {confirmed} in fresh jails",
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
