"""Which reports a fix has answered, and which records the log lacks. Pure.

Three things answer reports: our resolve record on the log, for the entries before it; a person's `fixed`,
for those until then; and a person's `reopen` takes both back. What is reported after it is a regression.
After the log was cleared an old fix answers nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from fleet.clock import iso, iso_seconds
from fleet.findings.records import SOURCE, ItemRecord, fixed_record, write_record
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow
from fleet.triage.items.cluster import Cluster, ReadReport, recurrence
from fleet.triage.items.life_events import seconds
from fleet.triage.items.rank import ItemFacts
from fleet.triage.items.worklist import WorklistItem

_NOTHING = ItemFacts(figures_by="journal")


def since_fixed(
    item: Cluster, records: Sequence[ItemRecord], decisions: Sequence[DecisionRow]
) -> Cluster | None:
    """The item with its reports since it was fixed last; None when it was not, or when none of ours came
    since: a stranger reopens nothing."""
    again = max((one.at for one in decisions if one.kind == "reopen"), default="")
    fixed = [one for one in records if one.kind == "verified-fixed" and one.at > again]
    decided = [one for one in decisions if one.kind == "fixed" and one.at > again]
    if not fixed and not decided:
        return None
    place = max(((one.epoch, one.index) for one in fixed), default=(-1, -1))
    at = max((seconds(one.at) for one in decided), default=-1)
    left = tuple(one for one in item.reports if one.place > place and one.at > at)
    if not any(report.trusted for report in left):
        return None
    return replace(item, reports=left, resolved_at=max([seconds(one.at) for one in fixed] + [at]))


def merged_figures(
    names: Collection[str], figures: Mapping[str, Recurrence], records: Sequence[ItemRecord]
) -> ItemFacts:
    """The larger of the journal's figures and those of the last `seen` record, of the name seen most often.

    The last look of a name counts for all of them.
    """
    if not (figures or records):
        return _NOTHING
    found = [figures[name] for name in names if name in figures]
    best = max(found, key=lambda one: (one.runs, one.last), default=None)
    logged = [one for one in records if one.kind == "seen"]
    if best is not None:
        clean = max(found, key=lambda one: one.clean_at)
        was = max(found, key=lambda one: one.cleaned_at)
        cleaned = was.cleaned_at, was.cleaned_run
        if any(one.last > clean.clean_at for one in found):  # another of its names was seen since
            cleaned, clean = max(cleaned, (clean.clean_at, clean.clean_run)), Recurrence()
        looked = max(one.looked for one in found)
        update = {"looked": looked, "clean_at": clean.clean_at, "clean_run": clean.clean_run}
        update |= {"clean_why": clean.clean_why}
        update |= {"cleaned_at": cleaned[0], "cleaned_run": cleaned[1]}
        best = best.model_copy(update=update)
    if not logged:
        return ItemFacts(figures=best, days=len(best.days) if best else 0, figures_by="journal")
    last = logged[-1]
    own = best or Recurrence()
    moved = {"last": max(own.last, last.last), "looked": max(own.looked, last.at)}
    shown = own.model_copy(update={**moved, "runs": max(own.runs, last.runs)})
    days = max(len(own.days), max(one.days for one in logged))
    by = "journal" if own.runs > last.runs else "log"
    return ItemFacts(figures=shown, days=days, figures_by=by)


def fixed_text(item: WorklistItem, figures: Mapping[str, Recurrence]) -> str:
    """The resolve record of an item that re-runs found clean, under the name that they ran it by."""
    clean = [name for name in item.names if name in figures and figures[name].clean_at]
    name = max(clean, key=lambda one: (figures[one].clean_at, one))
    record = fixed_record(name, figures[name])
    return write_record(record, surface=item.surface, title=item.title)


def seen_text(
    item: WorklistItem,
    reports: Sequence[ReadReport],
    own: Recurrence | None,
    records: Sequence[ItemRecord],
    now: datetime,
    every: timedelta,
) -> str | None:
    """The record of an item's figures, if they moved beyond the log's and the last one is old enough."""
    if own is None or not item.trusted:
        return None
    seen = [one for one in records if one.kind == "seen"]
    last = seen[-1].at if seen else iso_seconds(max(report.at for report in reports if report.trusted))
    runs = seen[-1].runs if seen else recurrence(reports)
    moved = own.runs > runs or own.last > (seen[-1].last if seen else last)
    if not moved or last > iso(now - every):
        return None
    at = max(own.looked, own.last) or iso(now)
    record = ItemRecord(
        kind="seen",
        item=item.fingerprint,
        at=at,
        who=SOURCE,
        runs=own.runs,
        days=len(own.days),
        last=own.last,
    )
    return write_record(record, surface=item.surface, title=item.title)
