"""Which decisions of persons stand, and what they say about items. Pure: any order in gives the same out.

A decision comes from the journal, from the log where it was published, or from both: its `name` tells that
they are one. Decisions take effect in the order of their times (of their names within one second), so that a
machine that has only the log comes to the same end. An `undo` takes away the decision that it names, another
undo included; what was undone has never been. Then the latest wins:

    fixed, dismiss, snooze, reopen   per item; an ended one brings no earlier one back
    severity                         per item
    merge, split                     per fingerprint: in which item it belongs, or that it stands alone
    link, unlink                     per pair of items, whichever was named first

`release` says nothing of an item: it lets a finding that is held be posted (fleet/runs/settlement/outbox.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast, get_args

from fleet.findings.records import ItemRecord
from fleet.store.rows import DecisionKind, DecisionRow
from fleet.store.standing import order, standing

_KINDS: frozenset[str] = frozenset(get_args(DecisionKind))
STATES: frozenset[DecisionKind] = frozenset({"fixed", "dismiss", "snooze", "reopen"})
"""The kinds that decide about the state of an item."""


@dataclass(frozen=True, slots=True)
class StandingDecisions:
    """What stands. `merges` and `splits` are by the fingerprint that moved, `unlinked` are pairs of items.

    `all` has every standing decision in order, undos included.
    """

    all: tuple[DecisionRow, ...]
    severities: Mapping[str, DecisionRow]
    merges: Mapping[str, DecisionRow]
    splits: Mapping[str, DecisionRow]
    links: tuple[DecisionRow, ...]
    unlinked: frozenset[frozenset[str]]

    def states_of(self, names: Collection[str]) -> tuple[DecisionRow, ...]:
        """The decisions about the state of the item with these fingerprints, the latest last.

        What was decided about a fingerprint before it was merged into the item is not about the item.
        """
        found = (one for one in self.all if one.kind in STATES and one.item in names)
        return tuple(one for one in found if self._about(one, names))

    def hiding(self, names: Collection[str], now: str) -> DecisionRow | None:
        """The dismissal or snooze that keeps this item off the open list at `now` (ISO), if any."""
        last = next(reversed(self.states_of(names)), None)
        if last is None or last.kind not in ("dismiss", "snooze") or (last.until and last.until <= now):
            return None
        return last

    def severity_of(self, names: Collection[str]) -> DecisionRow | None:
        """The decision about the severity of the item with these fingerprints."""
        found = [self.severities[name] for name in names if name in self.severities]
        return max((one for one in found if self._about(one, names)), key=order, default=None)

    def _about(self, one: DecisionRow, names: Collection[str]) -> bool:
        merge = self.merges.get(one.item)
        return merge is None or merge.other not in names or order(one) > order(merge)


def known(decisions: Iterable[DecisionRow], records: Iterable[ItemRecord] = ()) -> tuple[DecisionRow, ...]:
    """Every decision once, in order; of one that is published, the log's reason and its entry's index."""
    found = {one.name: one for one in decisions}
    published = [one for one in records if one.kind in _KINDS]
    for record in sorted(published, key=lambda one: (one.epoch, one.index), reverse=True):
        made = decision_of(record)
        found[made.name] = replace(made, platform=found.get(made.name, made).platform)
    return tuple(sorted(found.values(), key=order))


def fold(decisions: Iterable[DecisionRow], records: Iterable[ItemRecord] = ()) -> StandingDecisions:
    """What stands of the journal's decisions and of the records on the log."""
    stand = standing(known(decisions, records))
    severities: dict[str, DecisionRow] = {}
    homes: dict[str, DecisionRow] = {}
    pairs: dict[frozenset[str], DecisionRow] = {}
    for one in stand:
        if one.kind == "severity":
            severities[one.item] = one
        elif one.kind in ("merge", "split"):
            homes[one.item] = one
        elif one.kind in ("link", "unlink"):
            pairs[frozenset({one.item, one.other})] = one
    return StandingDecisions(
        all=stand,
        severities=severities,
        merges={name: one for name, one in homes.items() if one.kind == "merge"},
        splits={name: one for name, one in homes.items() if one.kind == "split"},
        links=tuple(one for one in pairs.values() if one.kind == "link"),
        unlinked=frozenset(pair for pair, one in pairs.items() if one.kind == "unlink"),
    )


def decision_of(record: ItemRecord) -> DecisionRow:
    """The decision that a record publishes; ValueError for a record of the machine."""
    if record.kind not in _KINDS:
        raise ValueError(f"{record.kind} is not decided by a person")
    return DecisionRow(
        item=record.item,
        kind=cast(DecisionKind, record.kind),
        reason=record.reason,
        who=record.who,
        at=record.at,
        name=record.name,
        until=record.until,
        severity=record.severity,
        other=record.other,
        link=record.link,
        undoes=record.undoes,
        entry=record.index,
    )


def record_of(decision: DecisionRow) -> ItemRecord:
    """The record that publishes a decision; pydantic's ValidationError for one that does not fit."""
    return ItemRecord(
        kind=decision.kind,
        item=decision.item,
        at=decision.at,
        who=decision.who,
        reason=decision.reason,
        until=decision.until,
        severity=decision.severity,  # type: ignore[arg-type]  # pydantic checks the word
        other=decision.other,
        link=decision.link,
        undoes=decision.undoes,
    )


def named(decision: DecisionRow) -> DecisionRow:
    """The decision as a record has it, cleaned and cut, under its name."""
    record = record_of(decision)
    return replace(decision, who=record.who, reason=record.reason, name=record.name)
