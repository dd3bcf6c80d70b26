"""One item of the fold in its place: judged by all that is known of it, made into what is listed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TypeAlias

from fleet.findings.records import ItemRecord
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow
from fleet.triage.items import outages
from fleet.triage.items.cluster import Cluster, ReadReport
from fleet.triage.items.fixes import fixed_text, merged_figures, seen_text, since_fixed
from fleet.triage.items.life import OPEN, Life, life
from fleet.triage.items.listed import item_of
from fleet.triage.items.merging import MergedItem
from fleet.triage.items.pass_inputs import PassInputs, SharedInputs
from fleet.triage.items.rank import RankedCluster, best_proof, judge, reported_order
from fleet.triage.items.reports import ItemReports
from fleet.triage.items.worklist import ItemLink, WorklistItem

Records: TypeAlias = Mapping[str, Sequence[ItemRecord]]
"""Records of the log about items, by fingerprint."""
ItemOrder: TypeAlias = tuple[bool, int, float, float, int, int, str]
"""Whether it is closed, then its `RankOrder`."""


@dataclass(slots=True)
class JudgedItem:
    """One item in its place. What needs no more than counts for its place is judged when it is listed.

    `fresh` is dropped once the item is made. `reopened` is when a person reopened it last: records from
    before it resolve nothing.
    """

    group: MergedItem
    order: ItemOrder = (False, 0, 0.0, 0.0, 0, 0, "")
    judged: bool = False
    fresh: RankedCluster | None = None
    item: WorklistItem | None = None
    records: tuple[ItemRecord, ...] = ()
    reports: tuple[ReadReport, ...] = ()
    reopened: str = ""

    @classmethod
    def placed(cls, group: MergedItem, records: Records, shared: SharedInputs) -> JudgedItem:
        """The item with its `order`."""
        made, item = cls(group), group.leading
        place = None
        if not group.others and not _told(item, records, shared):
            place = reported_order(item, shared.weights, shared.inputs.now.date())
        if place is None:
            made._judge(records, shared)
        else:
            made.order = (False, *place)
        return made

    def listed(self, place: int, records: Records, shared: SharedInputs) -> WorklistItem:
        """The item at this rank."""
        if not self.judged:
            self._judge(records, shared)
        if self.fresh is not None:
            alive = self.fresh.facts.life or _life(self.fresh.cluster, shared.end_of_day)
            self.item, self.fresh = item_of(self.fresh, place, alive), None
        elif self.item is not None and self.item.rank != place:
            self.item = replace(self.item, rank=place)
        assert self.item is not None
        return self.item

    def _judge(self, records: Records, shared: SharedInputs) -> None:
        whole, inputs, group = self.group.cluster(), shared.inputs, self.group
        self.records = _records_of(whole, records)
        decisions = shared.standing.states_of(whole.keys) if shared.standing.all else ()
        facts = merged_figures(whole.keys, inputs.figures, self.records)
        shown, lived = whole, None
        if self.records or decisions or facts.figures or whole.fingerprint in shared.gone:
            back = since_fixed(whole, self.records, decisions)
            now = inputs.now if decisions else shared.end_of_day
            lived = _life(whole, now, (back or whole).reports, facts.figures, self.records, decisions)
            if whole.fingerprint in shared.gone:
                lived = outages.over(lived, shared.gone[whole.fingerprint])
            if back is not None and lived.state not in ("fixed", "verified-fixed"):
                shown = back
        severity = shared.standing.severity_of(whole.keys) if shared.standing.all else None
        # merged items, then the links that persons made
        made = list(group.links)
        for one in shared.standing.links:
            if one.item in whole.keys or one.other in whole.keys:
                other = one.other if one.item in whole.keys else one.item
                made.append(ItemLink(one.link or "same-cause", other, one.reason, one.who))
        links = tuple(made)
        if lived or severity or links:
            facts = replace(
                facts,
                life=lived,
                severity=severity.severity if severity else "",
                severity_by=severity.who if severity else "",
                links=links,
            )
        self.fresh = judge(shown, shared.weights, facts, inputs.now.date())
        self.order = (lived is not None and lived.state not in OPEN, *self.fresh.order)
        self.judged, self.reports = True, shown.reports
        self.reopened = max((one.at for one in decisions if one.kind == "reopen"), default="")

    def fixed(self, item: WorklistItem, inputs: PassInputs) -> list[str]:
        """The resolve record of an item that is clean by the journal, if the log has none since."""
        if item.state != "verified-fixed" or not any(
            name in inputs.figures and inputs.figures[name].clean_at for name in item.names
        ):
            return []
        ours = [report for report in self.reports if report.trusted]
        places = [
            (record.epoch, record.index)
            for record in self.records
            if record.kind == "verified-fixed" and record.at > self.reopened
        ]
        return [] if places and max(places) > ours[-1].place else [fixed_text(item, inputs.figures)]

    def seen(self, item: WorklistItem, inputs: PassInputs) -> list[str]:
        """The record of its figures, if one is due."""
        own = merged_figures(item.names, inputs.figures, ()).figures
        if own is None or item.state not in OPEN:
            return []
        text = seen_text(item, self.reports, own, self.records, inputs.now, inputs.seen_every)
        return [text] if text else []


def _told(item: ItemReports, records: Records, shared: SharedInputs) -> bool:
    """Whether anything but reports says something of this item."""
    known: Iterable[str] = item.names or item.keys[:1]
    said = [one for one in (shared.inputs.figures, records, shared.gone, shared.decided) if one]
    return bool(said) and any(name in one for name in known for one in said)


def _records_of(whole: Cluster, records: Records) -> tuple[ItemRecord, ...]:
    if not records:
        return ()
    found = chain.from_iterable(records.get(name, ()) for name in whole.keys)
    return tuple(sorted(found, key=lambda one: (one.epoch, one.index)))


def _life(
    whole: Cluster,
    now: datetime,
    back: Sequence[ReadReport] = (),
    figures: Recurrence | None = None,
    records: Sequence[ItemRecord] = (),
    decisions: Sequence[DecisionRow] = (),
) -> Life:
    proof = best_proof(back or whole.reports)
    return life(whole.reports, proof=proof, figures=figures, records=records, decisions=decisions, now=now)
