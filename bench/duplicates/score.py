"""Pairs of entries: which ones triage put into one item, against the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from bench.duplicates.labelled import FLEET, LabelledEntry, logged
from fleet.triage.items.decisions import fold
from fleet.triage.items.index import TriageIndex
from fleet.triage.items.merging import NearItems, merged

UNPROVEN = frozenset({"needs-repro", "untrusted"})
"""Where claims with a false premise belong: anything above is a promotion."""


@dataclass(frozen=True, slots=True)
class DuplicateScore:
    """`joined` are pairs in one item, `same` pairs of one finding, `right` both; ids in the pairs are sorted.

    `suggested` are pairs of items that are similar, by the entry that opened each.
    `promoted` are ids of false premises in an item with a tier of proof above needs-repro and untrusted.
    """

    entries: int
    findings: int
    items: int
    joined: int
    same: int
    right: int
    merged_wrongly: tuple[tuple[str, str], ...]
    missed: tuple[tuple[str, str], ...]
    promoted: tuple[str, ...]
    suggested: tuple[tuple[str, str], ...] = ()
    suggested_wrongly: tuple[tuple[str, str], ...] = ()

    @property
    def precision(self) -> float:
        """Of the pairs in one item, the share of one finding; 1 without a pair."""
        return self.right / self.joined if self.joined else 1.0

    @property
    def recall(self) -> float:
        """Of the pairs of one finding, the share in one item; 1 without a pair."""
        return self.right / self.same if self.same else 1.0


def scored(entries: Sequence[LabelledEntry], among: Sequence[LabelledEntry] = ()) -> DuplicateScore:
    """Feed the entries through triage, those `among` before them; count the pairs with one of the entries."""
    told, entries = {entry.id for entry in entries}, [*among, *entries]
    index, near = triaged(entries)
    groups = merged(index.items(), near, fold((), ()))
    items = [[(entries[one.index], one) for one in group.cluster().reports] for group in groups]
    opened = {item.fingerprint: entries[item.first.index] for item in index.items()}
    pairs = [(opened[one.a], opened[one.b]) for one in near.similar()]
    suggested = [(one, other) for one, other in pairs if told & {one.id, other.id}]
    where = {entry.id: at for at, item in enumerate(items) for entry, _ in item}
    joined = {pair for item in items for pair in _pairs(entry.id for entry, _ in item) if told & {*pair}}
    by_finding: dict[str, list[str]] = {}
    for entry in entries:
        by_finding.setdefault(entry.finding, []).append(entry.id)
    same = {pair for ids in by_finding.values() for pair in _pairs(ids) if told & {*pair}}
    proven = {at for at, item in enumerate(items) if any(read.proof not in UNPROVEN for _, read in item)}
    return DuplicateScore(
        entries=len(entries),
        findings=len(by_finding),
        items=len(items),
        joined=len(joined),
        same=len(same),
        right=len(joined & same),
        merged_wrongly=tuple(sorted(joined - same)),
        missed=tuple(sorted(same - joined)),
        suggested=tuple((one.id, other.id) for one, other in suggested),
        suggested_wrongly=tuple(
            (one.id, other.id) for one, other in suggested if one.finding != other.finding
        ),
        promoted=tuple(sorted(e.id for e in entries if e.kind == "false-premise" and where[e.id] in proven)),
    )


def _pairs(ids: Iterable[str]) -> Iterable[tuple[str, str]]:
    return combinations(sorted(ids), 2)


def triaged(entries: Sequence[LabelledEntry]) -> tuple[TriageIndex, NearItems]:
    """What triage makes of these entries: exact keys first, then equal and similar texts."""
    index = TriageIndex(frozenset({FLEET}))
    index.add(logged(list(entries)))
    near = NearItems()
    near.add(index.items())
    if near.failed:
        raise RuntimeError(f"{near.failed} comparisons failed")
    return index, near
