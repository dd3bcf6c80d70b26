"""Which items a run asks for again, and in which order: the longest unlooked-at first. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from fleet.chain.node.abi import TABLE
from fleet.clock import iso
from fleet.findings import audit
from fleet.findings.recurrence import Recurrence
from fleet.runs.proof.item_questions import KnownItem
from fleet.severity import MINOR
from fleet.store.rows import ItemRow

MOST = 12
"""Items that a run of another purpose runs again at most."""
RARE = timedelta(days=30)
RARELY = 2
"""Items that are verified as fixed are run again after `RARE`, at most this many in a run."""
FIXED, VERIFIED, DISMISSED, SNOOZED = "fixed", "verified-fixed", "dismissed", "snoozed"
"""States of items that are not open (fleet/triage/items/life.py). A person's `fixed` is to be verified."""
UNPROVEN = ("new", "needs-repro")
NAMES = {"0x" + one.selector.hex(): one.name for one in TABLE}
"""Functions by which a repro may name a selector."""


def own_order(
    known: Iterable[KnownItem], figures: Mapping[str, Recurrence], persona: str, met: Collection[str]
) -> list[KnownItem]:
    """The items that a run of this persona asks for again, without those that it `met` (fingerprints).

    An item that has questions of several personas is clean only if each of them is: not its own.
    """
    found = [
        one
        for one in known
        if one.rows
        and all(row.persona == persona for row in one.rows)
        and not {one.item.fingerprint, *one.item.names} & {*met}
        and is_due(one.item, figures)
    ]
    return _by_look(found, figures)[:MOST]


def whole_order(
    known: Iterable[KnownItem], figures: Mapping[str, Recurrence], run: str, now: datetime
) -> tuple[tuple[str, ...], list[KnownItem]]:
    """What a run that does nothing else asks for: the audit's sample first, then all that is due.

    The sample is named (fingerprints) and leads the list; the budget decides how far down the run comes.
    """
    asked = {  # not of strangers, nor of what was never proven and has no repro: there is no question
        one.item.fingerprint: one
        for one in known
        if one.rows or (one.item.trusted and (one.item.repro or one.item.state not in UNPROVEN))
    }
    closed = (FIXED, VERIFIED, SNOOZED)
    minor = [
        name
        for name, one in asked.items()
        if one.item.state == DISMISSED or (one.item.severity in MINOR and one.item.state not in closed)
    ]
    sampled = audit.sample(minor, run)
    due = [one for one in asked.values() if is_due(one.item, figures)]
    again = iso(now - RARE)
    rare = [one for one in asked.values() if one.item.state == VERIFIED and looked(one, figures) < again]
    order = [*sampled, *map(_name, _by_look(due, figures)), *map(_name, _by_look(rare, figures)[:RARELY])]
    return sampled, [asked[name] for name in dict.fromkeys(order)]


def changed_first(
    order: Sequence[KnownItem], figures: Mapping[str, Recurrence], changed: Mapping[str, str]
) -> list[KnownItem]:
    """The same, but first the items whose repro names a function that changed after they were last run again;
    `changed` is when (ISO), by selector."""

    def is_old(one: KnownItem) -> bool:
        text, last = " ".join((one.item.repro, *(row.repro for row in one.rows))), looked(one, figures)
        later = (selector for selector, at in changed.items() if at > last)
        return any(
            word in text
            for selector in later
            for name in (NAMES.get(selector, selector),)
            for word in (selector, f'"{name}"', f'"{name}(')
        )

    return sorted(order, key=lambda one: not is_old(one))


def is_due(item: ItemRow, figures: Mapping[str, Recurrence]) -> bool:
    """Whether an item is open, or said to be fixed by a person, and not known to be clean since.

    A person who reopens an item takes back what was known to be clean.
    """
    if item.state in (VERIFIED, DISMISSED, SNOOZED):
        return False
    ones = [figures[name] for name in (item.fingerprint, *item.names) if name in figures]
    clean = max((one.clean_at for one in ones), default="")
    return not clean or any(one.last > clean for one in ones) or item.since > clean


def looked(known: KnownItem, figures: Mapping[str, Recurrence]) -> str:
    """When an item was last run again (ISO), under any of its names; "" for never."""
    names = (known.item.fingerprint, *known.item.names)
    return max((figures[name].looked for name in names if name in figures), default="")


def _name(known: KnownItem) -> str:
    return known.item.fingerprint


def _by_look(known: Iterable[KnownItem], figures: Mapping[str, Recurrence]) -> list[KnownItem]:
    return sorted(known, key=lambda one: (looked(one, figures), one.item.fingerprint))
