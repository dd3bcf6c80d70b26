"""Ended outages: removed from the worklist, and posted once to the log. Pure.

An outage's fingerprint includes its beginning, so an ended one stays ended. Two sources say so: the journal
of the fleet that saw it answer, and our own entry on the log, for readers who have only the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleet.findings.envelope import Envelope, write
from fleet.findings.outage import SURFACE, OutageEnd, is_outage, is_over, over_title
from fleet.triage.cluster import ReadReport

SOURCE = "qa-triage"


def still(reports: Sequence[ReadReport], ended: Sequence[OutageEnd]) -> list[ReadReport]:
    """The reports without those of ended outages, and without the entries that end them."""
    gone = {end.fp for end in ended} | {r.entry.fp for r in reports if r.trusted and is_over(r.entry)}
    return [r for r in reports if not (r.trusted and is_outage(r.entry) and r.entry.fp in gone)]


def due(reports: Sequence[ReadReport], ended: Sequence[OutageEnd]) -> tuple[str, ...]:
    """The missing entries: ends of outages whose beginning is on the log."""
    ours = [r.entry for r in reports if r.trusted and is_outage(r.entry)]
    said = {entry.fp for entry in ours if is_over(entry)}
    known = {entry.fp for entry in ours} - said
    return tuple(
        write(Envelope(source=SOURCE, sev="info", surface=SURFACE, fp=end.fp, title=over_title(end)))
        for end in ended
        if end.fp in known
    )
