"""Ended outages: closed on the worklist, and posted once to the log. Pure.

An outage's fingerprint includes its beginning, so an ended one stays ended. Two sources say so: the journal
of the fleet that saw it answer, and our own entry on the log, for readers who have only the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleet.clock import iso_seconds
from fleet.findings.envelope import Envelope, write
from fleet.findings.outage import SURFACE, OutageEnd, is_outage, over_title
from fleet.findings.records import SOURCE
from fleet.severity import Severity
from fleet.triage.items.index import TriageIndex
from fleet.triage.items.life import Life, Stage


def ended_at(index: TriageIndex, ended: Sequence[OutageEnd]) -> Mapping[str, str]:
    """When each outage ended (ISO), by fingerprint: the journal's time before that of the log's entry."""
    return {fp: iso_seconds(at) for fp, at in index.ends.items()} | {end.fp: end.until for end in ended}


def over(life: Life, at: str) -> Life:
    """The life of an outage that ended then."""
    end = Stage("verified-fixed", at, "the platform answered")
    stages = (*(one for one in life.stages if one.at <= at), end)
    return Life("verified-fixed", at, stages, reason="the outage is over")


def due(index: TriageIndex, ended: Sequence[OutageEnd]) -> tuple[str, ...]:
    """The missing entries: ends of outages whose beginning is on the log."""
    return tuple(
        write(Envelope(source=SOURCE, sev=Severity.INFO, surface=SURFACE, fp=end.fp, title=over_title(end)))
        for end in ended
        if end.fp not in index.ends
        and (item := index.item(end.fp)) is not None
        and item.reports
        and is_outage(item.first.entry)
    )
