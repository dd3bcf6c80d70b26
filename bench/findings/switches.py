"""The switches of a generated platform: one of each class, its place and constant drawn. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from random import Random
from typing import Any, Literal

from bench.findings.blueprint import Blueprint
from bench.findings.rules import EffectRule

Rung = Literal["observe", "exercise"]
MODULES = ("pages", "answers", "injections", "documents", "agents", "calls", "chain")
"""Modules of `classes`, each with its `CLASSES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One defect that can be on. `place` and `kind` are words that the platform's code looks for.

    `ground` is what it stands on: two switches of one ground would mask each other, so they are never on
    together.
    """

    klass: str
    place: str
    kind: str = ""
    rung: Rung
    tool: str
    """A tool that can show it."""
    tell: str
    """What is wrong, in a sentence."""
    needs: str = ""
    """What a tool must be able to ask besides the ordinary: a word of `reach`."""
    rule: EffectRule
    ground: frozenset[str] = frozenset()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Its constants."""

    @property
    def words(self) -> dict[str, Any]:
        """As data for a report."""
        return {
            "class": self.klass,
            "place": self.place,
            "kind": self.kind,
            "data": dict(self.data),
            "rung": self.rung,
            "tool": self.tool,
            "tell": self.tell,
            "needs": self.needs,
        }


Draw = Callable[[Blueprint, Random], Switch]


def drawers() -> dict[str, Draw]:
    """The function that draws a switch, by class; adding a class is one line in a module's table."""
    return {
        klass: draw
        for name in MODULES
        for klass, draw in import_module(f"bench.findings.classes.{name}").CLASSES.items()
    }


def drawn(blueprint: Blueprint) -> tuple[Switch, ...]:
    """A switch of every class, each from a draw of its own: a new class moves no other."""
    made = [draw(blueprint, Random(f"switch/{blueprint.seed}/{klass}")) for klass, draw in drawers().items()]
    return tuple(made)


def grouped(switches: Iterable[Switch], groups: int, seed: int) -> tuple[tuple[Switch, ...], ...]:
    """The switches in groups that are on together: evenly, and never two on one ground."""
    order = list(switches)
    Random(f"groups/{seed}").shuffle(order)
    made: list[list[Switch]] = [[] for _ in range(groups)]
    for one in order:
        free = [group for group in made if not any(one.ground & other.ground for other in group)]
        if not free:
            made.append([])
            free = made[-1:]
        min(free, key=len).append(one)
    return tuple(tuple(group) for group in made)
