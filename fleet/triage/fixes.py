"""Items whose defect is gone: off the worklist, and one resolve record on the log for each. Pure.

Two sources say so: the re-runs in the journal, which make a record due, and our own record on the log, which
hides what was reported before it; what is reported after it is a regression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fleet.findings.envelope import Envelope, write
from fleet.findings.recurrence import Recurrence, fixed_title, is_fixed
from fleet.triage.cluster import Cluster, ReadReport
from fleet.triage.resolve import Resolution

SOURCE = "qa-triage"


def recorded(reports: Iterable[ReadReport]) -> tuple[list[ReadReport], list[Resolution]]:
    """The reports without our resolve records, and what those resolve."""
    records = [one for one in reports if one.trusted and is_fixed(one.entry)]
    resolutions = [
        Resolution(key=one.entry.fp, at=max(0, one.at), epoch=one.epoch, index=one.index) for one in records
    ]
    marks = {(one.epoch, one.index) for one in records}
    return [one for one in reports if (one.epoch, one.index) not in marks], resolutions


def due(open_: Iterable[Cluster], seen: Mapping[str, Recurrence]) -> tuple[str, ...]:
    """The missing records: open items of ours that re-runs found clean."""
    texts = []
    for item in open_:
        found = [seen[key] for key in sorted(item.keys) if key in seen]
        lead = next((one for one in item.reports if one.trusted), None)
        if lead is None or not any(one.clean_at for one in found):
            continue
        if any(one.last > max(two.clean_at for two in found) for one in found):
            continue  # another of its names was seen since
        clean = max(found, key=lambda one: one.clean_at)
        title = fixed_title(lead.entry.title, clean)
        texts.append(
            write(
                Envelope(
                    source=SOURCE,
                    sev="info",
                    surface=lead.entry.surface,
                    fp=item.fingerprint,
                    title=title[:220],
                )
            )
        )
    return tuple(texts)


def counted(items: Sequence[Cluster], seen: Mapping[str, Recurrence]) -> Mapping[str, Recurrence]:
    """The figures of each cluster by its fingerprint: those of its most often seen name."""
    found = {item.fingerprint: [seen[key] for key in item.keys if key in seen] for item in items}
    return {name: max(ones, key=lambda one: (one.runs, one.last)) for name, ones in found.items() if ones}
