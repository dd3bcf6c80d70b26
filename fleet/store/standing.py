"""Which decisions of persons stand: an `undo` takes away what it names, another undo included. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import TopologicalSorter

from fleet.store.rows import DecisionRow


def order(one: DecisionRow) -> tuple[str, str]:
    """Decisions take effect in the order of their times, of their names within one second."""
    return one.at, one.name


def standing(decisions: Iterable[DecisionRow]) -> tuple[DecisionRow, ...]:
    """Every decision that stands, in order."""
    ordered = sorted(decisions, key=order)
    undos: dict[str, set[str]] = {one.name: set() for one in ordered}
    for one in ordered:
        if one.kind == "undo" and one.undoes in undos:
            undos[one.undoes].add(one.name)
    stands: dict[str, bool] = {}
    for name in TopologicalSorter(undos).static_order():  # undos before what they undo
        stands[name] = not any(stands[undo] for undo in undos[name])
    return tuple(one for one in ordered if stands[one.name])
