"""The worklist kept up to date: the index of an epoch, what is one item, and the order of all items. Pure.

A pass adds what is new and asks for the list; only what changed is judged again. Whether the fold is new or
has followed the log for a year, the same entries, figures and decisions on the same day give the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from itertools import chain

from sortedcontainers import SortedDict

from fleet.drivers.model.pairs import AskedPair
from fleet.findings.outage import OutageEnd
from fleet.findings.reader import ParsedEntry
from fleet.findings.records import ItemRecord
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow
from fleet.triage import meta, outages
from fleet.triage.cluster import Cluster, LoggedText, ReadReport
from fleet.triage.decisions import StandingDecisions, fold
from fleet.triage.fixes import fixed_text, merged_figures, seen_text, since_fixed
from fleet.triage.index import TriageIndex, no_collection
from fleet.triage.item_reports import ItemReports
from fleet.triage.life import OPEN, Life, life
from fleet.triage.merging import MergedItem, NearItems, merged
from fleet.triage.rank import RankedCluster, best_proof, checked, item_of, judge
from fleet.triage.worklist import ItemLink, WorklistItem

SEEN_AT_ONCE = 20
"""Most `seen` records of one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassInputs:
    """What a pass knows besides the log. `now` is its time: within a UTC day only decisions end.

    `figures` are those of the journal by fingerprint, `ended` the outages that it saw end. `since` (ISO) is
    when the epoch began: a `fixed` from before it answers nothing.
    """

    now: datetime
    weights: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, Recurrence] = field(default_factory=dict)
    decisions: Sequence[DecisionRow] = ()
    ended: Sequence[OutageEnd] = ()
    since: str = ""
    seen_every: timedelta = timedelta(days=7)

    def same_for_items(self, other: PassInputs | None) -> bool:
        """Whether an item that did not change, nor its figures, is judged as before."""
        return other is not None and (
            replace(self, now=other.now, figures=other.figures) == other
            and self.now.date() == other.now.date()
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """A worklist: open items ranked from 1, then all others with rank 0; and the entries that the log lacks.

    `summary` is the `sev=meta` entry, None when none is due. `records` are to be posted unchanged, once each:
    ends of outages, resolve records, `seen` records. `unread` strangers' entries are beyond the bounds.
    """

    items: tuple[WorklistItem, ...]
    summary: str | None = None
    records: tuple[str, ...] = ()
    unread: int = 0


@dataclass(slots=True)
class _Judged:
    """One item in its place; made into what is listed when the list is asked for."""

    order: tuple[bool, int, float, int, int, str]
    read: tuple[str, ParsedEntry]
    fresh: RankedCluster | None
    item: WorklistItem | None = None
    records: tuple[ItemRecord, ...] = ()
    reports: tuple[ReadReport, ...] = ()
    reopened: str = ""
    """When a person reopened it last: records from before it resolve nothing."""

    def listed(self, place: int, now: datetime) -> WorklistItem:
        """The item at this rank; what it was made from is dropped. `now` is for one only reported."""
        if self.fresh is not None:
            if self.fresh.facts.life is None:
                self.fresh.facts = replace(self.fresh.facts, life=_life(self.fresh.cluster, now))
            self.item, self.fresh = item_of(self.fresh, place), None
        elif self.item is not None and self.item.rank != place:
            self.item = replace(self.item, rank=place)
        assert self.item is not None
        return self.item


@dataclass(slots=True)
class _Shared:
    """What is the same for all items of one pass."""

    inputs: PassInputs
    weights: Mapping[str, float]
    standing: StandingDecisions
    gone: Mapping[str, str]
    end_of_day: datetime


class TriageFold:
    """One epoch of one log. `add` entries, then `decide`."""

    def __init__(self, trusted: frozenset[str]) -> None:
        self.index = TriageIndex(trusted)
        self._near = NearItems()
        self._groups: dict[int, MergedItem] = {}
        self._judged: dict[str, _Judged] = {}
        self._order: SortedDict[tuple[bool, int, float, int, int, str], _Judged] = SortedDict()
        self._inputs: PassInputs | None = None
        self._records: tuple[ItemRecord, ...] = ()

    def add(self, entries: Iterable[LoggedText]) -> None:
        """Entries that follow those before."""
        self.index.add(entries)

    def decide(self, inputs: PassInputs) -> Decided:
        """The worklist as of now; ConfigError for a bad weight."""
        with no_collection():
            self.refresh(inputs)
            return self._decided(inputs)

    def _decided(self, inputs: PassInputs) -> Decided:
        items, fixed, seen, place, today = [], [], [], 0, _end_of_day(inputs.now)
        for one in self._order.values():
            place += not one.order[0]
            item = one.listed(0 if one.order[0] else place, today)
            items.append(item)
            if item.trusted:
                fixed += self._fixed(one, item, inputs)
                seen += self._seen(one, item, inputs)
        texts = (*outages.due(self.index, inputs.ended), *fixed, *seen[:SEEN_AT_ONCE])
        summary = meta.summary(items) if meta.due(items, self.index.summary) else None
        return Decided(tuple(items), summary, texts, self.index.unread)

    def doubtful(self) -> list[AskedPair]:
        """Pairs of items that are nearly alike enough to be one, the likeliest first; bounded."""
        by_name = {item.fingerprint: item.first.entry for item in self.index.items() if item.keys}
        pairs = [(one.a, one.b) for one in self._near.doubtful() if one.a in by_name and one.b in by_name]
        return [AskedPair(a, b, *(f"{e.title} {e.body}" for e in (by_name[a], by_name[b]))) for a, b in pairs]

    def refresh(self, inputs: PassInputs) -> None:
        """Judges what changed since the last call, or everything when more than entries did."""
        weights = checked(inputs.weights)
        changed = list(self.index.changed())
        records = tuple(chain.from_iterable(self.index.records.values()))
        alike = inputs.same_for_items(self._inputs) and records == self._records
        before, self._inputs, self._records = self._inputs or inputs, inputs, records
        standing = fold(
            [one for one in inputs.decisions if one.kind != "fixed" or one.at >= inputs.since], records
        )
        alike = alike and not _ended(standing, before.now, inputs.now)
        gone = outages.ended_at(self.index, inputs.ended)
        shared = _Shared(inputs, weights, standing, gone, _end_of_day(inputs.now))
        if self._near.stale(changed):
            self._near, alike = NearItems(), False
        linked = self._near.add(self.index.items() if not alike else sorted(changed, key=_first))
        if linked or not alike:
            self._regroup(shared, alike)
            return
        for item in {*changed, *self._looked_at(before.figures, inputs.figures)}:
            if not item.keys:
                continue
            group = self._groups.setdefault(id(item), MergedItem(item))
            self._put(group, shared)

    def _looked_at(
        self, before: Mapping[str, Recurrence], now: Mapping[str, Recurrence]
    ) -> Iterator[ItemReports]:
        """The items whose figures are other ones now."""
        if before is not now:
            for name in before.keys() | now.keys():
                if before.get(name) != now.get(name) and (item := self.index.item(name)) is not None:
                    yield item

    def _regroup(self, shared: _Shared, alike: bool) -> None:
        self._groups, self._judged = {}, {}
        self._order.clear()
        for group in merged(self.index.items(), self._near, shared.standing):
            for item in (group.leading, *group.others):
                self._groups[id(item)] = group
            self._put(group, shared)

    def _put(self, group: MergedItem, shared: _Shared) -> None:
        name = group.leading.fingerprint
        before = self._judged.get(name)
        if before is not None:
            del self._order[before.order]
        judged = self._judge(group, shared, before.read if before else None)
        self._judged[name] = self._order[judged.order] = judged

    def _judge(self, group: MergedItem, shared: _Shared, known: tuple[str, ParsedEntry] | None) -> _Judged:
        whole, inputs = group.cluster(), shared.inputs
        records = self._records_of(whole)
        decisions = shared.standing.states_of(whole.keys) if shared.standing.all else ()
        facts = merged_figures(whole.keys, inputs.figures, records)
        shown, lived = whole, None
        if records or decisions or facts.figures or whole.fingerprint in shared.gone:
            back = since_fixed(whole, records, decisions)
            now = inputs.now if decisions else shared.end_of_day
            lived = _life(whole, now, (back or whole).reports, facts.figures, records, decisions)
            if whole.fingerprint in shared.gone:
                lived = outages.over(lived, shared.gone[whole.fingerprint])
            if back is not None and lived.state not in ("fixed", "verified-fixed"):
                shown = back
        severity = shared.standing.severity_of(whole.keys) if shared.standing.all else None
        links = _links(group, whole, shared.standing)
        if lived or severity or links:
            facts = replace(
                facts,
                life=lived,
                severity=severity.severity if severity else "",
                severity_by=severity.who if severity else "",
                links=links,
            )
        ranked = judge(shown, shared.weights, facts, inputs.now.date(), known)
        order = (lived is not None and lived.state not in OPEN, *ranked.order)
        read = (ranked.lead.text, ranked.entry)
        reopened = max((one.at for one in decisions if one.kind == "reopen"), default="")
        return _Judged(order, read, ranked, None, records, shown.reports, reopened)

    def _records_of(self, whole: Cluster) -> tuple[ItemRecord, ...]:
        if not self.index.records:
            return ()
        found = chain.from_iterable(self.index.records.get(name, ()) for name in whole.keys)
        return tuple(sorted(found, key=lambda one: (one.epoch, one.index)))

    def _fixed(self, one: _Judged, item: WorklistItem, inputs: PassInputs) -> list[str]:
        """The resolve record of an item that is clean by the journal, if the log has none since."""
        if item.state != "verified-fixed" or not any(
            name in inputs.figures and inputs.figures[name].clean_at for name in item.names
        ):
            return []
        ours = [report for report in one.reports if report.trusted]
        places = [
            (record.epoch, record.index)
            for record in one.records
            if record.kind == "verified-fixed" and record.at > one.reopened
        ]
        return [] if places and max(places) > ours[-1].place else [fixed_text(item, inputs.figures)]

    def _seen(self, one: _Judged, item: WorklistItem, inputs: PassInputs) -> list[str]:
        own = merged_figures(item.names, inputs.figures, ()).figures
        if own is None or item.state not in OPEN:
            return []
        text = seen_text(item, one.reports, own, one.records, inputs.now, inputs.seen_every)
        return [text] if text else []


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


def _end_of_day(now: datetime) -> datetime:
    return datetime.combine(now.date(), time(23, 59, 59), UTC)


def _ended(standing: StandingDecisions, before: datetime, now: datetime) -> bool:
    """Whether a dismissal or a snooze ended meanwhile, of the journal or published."""
    return any(one.until and before <= datetime.fromisoformat(one.until) <= now for one in standing.all)


def _first(item: ItemReports) -> tuple[int, int]:
    return item.first.place if item.keys else (0, 0)


def _links(group: MergedItem, whole: Cluster, standing: StandingDecisions) -> tuple[ItemLink, ...]:
    """Merged items, then the links that persons made."""
    made = list(group.links)
    for one in standing.links:
        if one.item in whole.keys or one.other in whole.keys:
            other = one.other if one.item in whole.keys else one.item
            made.append(ItemLink(one.link or "same-cause", other, one.reason, one.who))
    return tuple(made)
