"""Which items are one although their names differ: the same words, or merged by a person. Pure.

Texts are compared in order of first sight; no stranger is part of what merges items of ours, and a
stranger's item joins at most one. A person's split keeps an item by itself, a
person's merge joins any two. A comparison that fails merges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fleet.findings.outage import is_outage
from fleet.triage.items.cluster import Cluster
from fleet.triage.items.decisions import StandingDecisions
from fleet.triage.items.reports import ItemReports
from fleet.triage.items.similar import NearLink, SimilarTexts
from fleet.triage.items.worklist import ItemLink

STRANGERS_COMPARED = 500
"""Items of strangers whose text is compared: the first ones. A flood of them stays a flood of items."""


@dataclass(frozen=True, slots=True)
class MergedItem:
    """One item of the worklist: the `leading` one, the `others` that are the same, and why they are."""

    leading: ItemReports
    others: tuple[ItemReports, ...] = ()
    links: tuple[ItemLink, ...] = ()

    def cluster(self) -> Cluster:
        """All reports under the leading fingerprint; strangers' names count only where all are strangers."""
        whole = self.leading.cluster()
        if not self.others:
            return whole
        parts = [one.cluster() for one in self.others]
        ours = bool(self.leading.reports)
        own = [one for one, item in zip(parts, self.others, strict=True) if item.reports or not ours]
        return Cluster(
            whole.fingerprint,
            whole.keys.union(*(one.keys for one in own)),
            tuple(
                sorted((r for one in (whole, *parts) for r in one.reports), key=lambda report: report.place)
            ),
            runs=len({run for one in (self.leading, *self.others) for run in one.runs}),
        )


class NearItems:
    """The texts compared so far. Each item is compared once, by the report that opened it, in the order of
    the log: what changes that order later (`stale`) needs a new comparison of all."""

    def __init__(self) -> None:
        self._texts = SimilarTexts()
        self._known: dict[int, tuple[ItemReports, bool, str]] = {}
        self._strangers = 0
        self.failed = 0
        """Comparisons that failed."""

    @property
    def links(self) -> Mapping[str, NearLink]:
        """Link of an item to the first of ours that says the same, else to the first one, by fingerprint."""
        return self._texts.links

    def similar(self) -> list[NearLink]:
        """Pairs of items that may be the same, the likeliest first; bounded."""
        return self._texts.similar()

    def stale(self, changed: Iterable[ItemReports]) -> bool:
        """Whether one of these differs from what was compared: joined to another, or reported by us now."""
        found = ((self._known.get(id(item)), item) for item in changed)
        return any(was and was[1:] != (bool(item.reports), _name(item)) for was, item in found)

    def add(self, items: Iterable[ItemReports]) -> bool:
        """Compares the items that are new, in the order given; whether any link is another one now."""
        for item in items:
            if id(item) in self._known or not item.keys:
                continue
            self._known[id(item)] = (item, bool(item.reports), _name(item))
            if not item.reports:
                if self._strangers == STRANGERS_COMPARED:
                    continue
                self._strangers += 1
            try:
                entry = item.first.entry
                exact = item.first.trusted and (bool(entry.was) or entry.repro_state in ("calls", "evidence"))
                self._texts.add(
                    item.fingerprint,
                    entry.surface,
                    entry.title,
                    entry.body,
                    exact=exact or is_outage(entry),
                    ours=bool(item.reports),
                )
            except Exception:  # whatever it is: an error never merges two defects
                self.failed += 1
        try:
            return self._texts.settle()
        except Exception:  # the links stay as they were
            self.failed += 1
            return False


def _name(item: ItemReports) -> str:
    return item.fingerprint if item.keys else ""


def merged(items: Sequence[ItemReports], near: NearItems, standing: StandingDecisions) -> list[MergedItem]:
    """The items of the worklist, in order of first sight of what leads each."""
    by_name = {name: item for item in items for name in (*item.names, *item.keys)}
    alone = {id(by_name[name]) for name in standing.splits if name in by_name}
    roots: dict[int, ItemReports] = {}
    links: dict[int, list[ItemLink]] = {}
    alike: dict[str, list[ItemReports]] = {}
    for item in items:
        if item.keys and id(item) not in alone:
            link = near.links.get(item.fingerprint)
            alike.setdefault(link.b if link else item.fingerprint, []).append(item)
    for name, group in alike.items():
        opens = by_name.get(name)
        ours = [item for item in group if item.reports] if opens is not None and opens.reports else []
        for item in ours[1:]:  # a stranger's item between two of ours joins neither to the other
            _unite(roots, links, item, ours[0], _why(near, item, ours[0]), "similarity")
    for name, decision in standing.merges.items():
        if (one := by_name.get(name)) is not None and (other := by_name.get(decision.other)) is not None:
            _unite(roots, links, one, other, decision.reason, decision.who)
    for group in alike.values():
        lead = next((item for item in group if item.reports), group[0])
        for item in group:
            if not item.reports and _root(roots, item) is item:
                _unite(roots, links, item, lead, _why(near, item, lead), "similarity")
    groups: dict[int, list[ItemReports]] = {}
    for item in items:
        groups.setdefault(id(_root(roots, item)), []).append(item)
    made = [_made(group, links) for group in groups.values()]
    return sorted(made, key=lambda one: one.leading.first.place)


def _made(group: list[ItemReports], links: Mapping[int, list[ItemLink]]) -> MergedItem:
    if len(group) == 1:
        return MergedItem(group[0])
    leading = min(group, key=lambda one: (not one.reports, one.first.place))
    shown = tuple(
        link if one is leading else replace(link, other=one.fingerprint)
        for one in group
        for link in links.get(id(one), ())
    )
    return MergedItem(leading, tuple(one for one in group if one is not leading), shown)


def _unite(
    roots: dict[int, ItemReports],
    links: dict[int, list[ItemLink]],
    item: ItemReports,
    other: ItemReports,
    why: str,
    by: str,
) -> None:
    if item is not other:
        roots[id(_root(roots, item))] = _root(roots, other)
        links.setdefault(id(item), []).append(ItemLink("duplicate", other.fingerprint, why, by))


def _why(near: NearItems, item: ItemReports, other: ItemReports) -> str:
    link = near.links.get(item.fingerprint) or near.links.get(other.fingerprint)
    return link.why if link else "the same words"


def _root(roots: Mapping[int, ItemReports], item: ItemReports) -> ItemReports:
    while (parent := roots.get(id(item), item)) is not item:
        item = parent
    return item
