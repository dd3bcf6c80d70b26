"""The worklist kept up to date: the index of an epoch, what is one item, and the order of all items. Pure.

A pass adds what is new and asks for the list; only what changed is judged again. Whether the fold is new or
has followed the log for a year, the same entries, figures and decisions on the same day give the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, product

from sortedcontainers import SortedDict

from fleet.drivers.model.pairs import AskedPair
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import MirroredEntry
from fleet.triage.items import meta, outages
from fleet.triage.items.decisions import fold
from fleet.triage.items.index import TriageIndex, no_collection
from fleet.triage.items.judged import ItemOrder, JudgedItem
from fleet.triage.items.merging import MergedItem, NearItems, merged
from fleet.triage.items.pass_inputs import PassInputs, SharedInputs
from fleet.triage.items.rank import checked
from fleet.triage.items.reports import ItemReports
from fleet.triage.items.worklist import WorklistItem

SEEN_AT_ONCE = 20
"""Most `seen` records of one pass."""


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


class TriageFold:
    """One epoch of one log. `add` entries, then `decide`."""

    def __init__(self, trusted: frozenset[str]) -> None:
        self.index = TriageIndex(trusted)
        self._near = NearItems()
        self._groups: dict[int, MergedItem] = {}
        self._judged: dict[str, JudgedItem] = {}
        self._order: SortedDict[ItemOrder, JudgedItem] = SortedDict()
        self._inputs: PassInputs | None = None
        self._standing, self._recorded, self._begun = fold(()), 0, False

    def add(self, entries: Iterable[MirroredEntry]) -> None:
        """Entries that follow those before."""
        self.index.add(entries)

    def decide(self, inputs: PassInputs) -> Decided:
        """The worklist as of now; ConfigError for a bad weight."""
        with no_collection():
            return self._decided(self.refresh(inputs))

    def _decided(self, shared: SharedInputs) -> Decided:
        inputs, items, fixed, seen, place = shared.inputs, [], [], [], 0
        for one in self._order.values():
            place += not one.order[0]
            item = one.listed(0 if one.order[0] else place, self.index.records, shared)
            items.append(item)
            if item.trusted:
                fixed += one.fixed(item, inputs)
                seen += one.seen(item, inputs)
        texts = (*outages.due(self.index, inputs.ended), *fixed, *seen[:SEEN_AT_ONCE])
        summary = meta.summary(items) if meta.due(items, self.index.summary) else None
        return Decided(tuple(items), summary, texts, self.index.unread)

    def similar(self) -> list[AskedPair]:
        """Pairs of items that may be the same, the likeliest first; bounded, and without those that a person
        unlinked."""
        made: list[AskedPair] = []
        for link in self._near.similar():
            one, other = self.index.item(link.a), self.index.item(link.b)
            if one is None or other is None or not (one.keys and other.keys):
                continue
            names = product({*one.names, one.fingerprint}, {*other.names, other.fingerprint})
            if self._standing.unlinked.isdisjoint(map(frozenset, names)):
                a, b = (f"{entry.title} {entry.body}" for entry in (one.first.entry, other.first.entry))
                made.append(AskedPair(link.a, link.b, a, b, link.why))
        return made

    def refresh(self, inputs: PassInputs) -> SharedInputs:
        """Gives what changed since the last call its place, or everything when more than entries did."""
        weights = checked(inputs.weights)
        moved = set(self.index.changed())
        before, self._inputs = self._inputs or inputs, inputs
        # whether a dismissal or a snooze ended meanwhile, of the journal or published
        alike = self._stand(inputs, before) and not any(
            one.until and before.now <= datetime.fromisoformat(one.until) <= inputs.now
            for one in self._standing.all
        )
        gone = outages.ended_at(self.index, inputs.ended)
        shared = SharedInputs.of(inputs, weights, self._standing, gone)
        if self._near.stale(moved):
            self._near, alike = NearItems(), False
        linked = self._near.add(
            sorted(moved, key=lambda one: one.first.place if one.keys else (0, 0))
            if alike
            else self.index.items()
        )
        moved.update(self._looked_at(before.figures, inputs.figures))
        if linked or not alike:
            self._regroup(shared, moved if alike else None)
            return shared
        for item in moved:
            if item.keys:
                group = self._groups.get(id(item))
                if group is None:
                    group = self._groups[id(item)] = MergedItem(item)
                self._put(group, shared)
        return shared

    def _stand(self, inputs: PassInputs, before: PassInputs) -> bool:
        """Works out which decisions stand; whether they, and all else but figures, are as before."""
        alike = self._begun and inputs.same_for_items(before)
        if not alike or self.index.recorded != self._recorded:
            made = fold(
                [one for one in inputs.decisions if one.kind != "fixed" or one.at >= inputs.since],
                chain.from_iterable(self.index.records.values()),
            )
            alike = alike and made == self._standing
            self._standing, self._recorded, self._begun = made, self.index.recorded, True
        return alike

    def _looked_at(
        self, before: Mapping[str, Recurrence], now: Mapping[str, Recurrence]
    ) -> Iterator[ItemReports]:
        """The items whose figures are other ones now."""
        if before is not now:
            for name in before.keys() | now.keys():
                if before.get(name) != now.get(name) and (item := self.index.item(name)) is not None:
                    yield item

    def _regroup(self, shared: SharedInputs, moved: set[ItemReports] | None) -> None:
        """Places all items anew; a group stays judged when no item of it `moved` (None: all did)."""
        groups, known = self._groups, self._judged
        self._groups, self._judged = {}, {}
        self._order.clear()
        for group in merged(self.index.items(), self._near, shared.standing):
            members = (group.leading, *group.others)
            self._groups.update((id(item), group) for item in members)
            name = group.leading.fingerprint
            as_before = moved is not None and groups.get(id(group.leading)) == group
            if as_before and name in known and moved is not None and moved.isdisjoint(members):
                self._judged[name] = self._order[known[name].order] = known[name]
            else:
                self._put(group, shared)

    def _put(self, group: MergedItem, shared: SharedInputs) -> None:
        name = group.leading.fingerprint
        before, judged = self._judged.get(name), JudgedItem.placed(group, self.index.records, shared)
        if before is not None and before.order != judged.order:
            del self._order[before.order]
        self._judged[name] = self._order[judged.order] = judged
