"""Counts: which defects were found, which items are true, and whether titles say so. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.findings.fleet_rounds import FinderOutcome
from bench.findings.rules import Posted
from bench.findings.targets import Examined


@dataclass(frozen=True, slots=True)
class Judged:
    """What one finder's items on one target came to."""

    target: Examined
    finder: str
    outcome: FinderOutcome
    found: frozenset[str]
    true: int
    titled: int
    untitled: int
    """True items whose title is not judged: their rules have no pattern."""
    false: tuple[str, ...]
    """Titles of items that show no defect that is there."""


def judged(target: Examined, finder: str, outcome: FinderOutcome) -> Judged:
    """Match each item with the target's defects by their rules."""
    found: set[str] = set()
    true = titled = untitled = 0
    false = []
    for item in outcome.items:
        shown = [one for one in target.wanted if one.rule.shows(item)]
        if not shown:
            false.append(_words(item))
            continue
        found |= {one.name for one in shown}
        true += 1
        judging = [one.rule for one in shown if one.rule.title]
        titled += any(rule.titled(item) for rule in judging)
        untitled += not judging
    return Judged(target, finder, outcome, frozenset(found), true, titled, untitled, tuple(false))


def _words(item: Posted) -> str:
    return item.title or "without a title"


@dataclass(slots=True)
class FinderTally:
    """Sums over targets, for one finder and one kind of target."""

    targets: int = 0
    wanted: int = 0
    reachable: int = 0
    found: int = 0
    items: int = 0
    true: int = 0
    titled: int = 0
    untitled: int = 0
    calls: int = 0
    writes: int = 0
    seconds: float = 0.0
    firsts: list[float] = field(default_factory=list)
    classes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    """By class: found, seeded."""
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    beyond: int = 0
    """Found, though no tool is known to reach them."""

    def add(self, one: Judged) -> None:
        """Add what one target came to."""
        self.targets += 1
        self.wanted += len(one.target.wanted)
        within = {wanted.name for wanted in one.target.wanted if wanted.reachable}
        self.reachable += len(within)
        self.beyond += len(one.found - within)
        self.found += len(one.found)
        self.items += len(one.outcome.items)
        self.true += one.true
        self.titled += one.titled
        self.untitled += one.untitled
        self.calls += one.outcome.calls
        self.writes += one.outcome.writes
        self.seconds += one.outcome.seconds
        self.firsts += [one.outcome.first_s] if one.outcome.first_s else []
        for wanted in one.target.wanted:
            counts = self.classes[wanted.name]
            counts[0] += wanted.name in one.found
            counts[1] += 1
            if wanted.name not in one.found:
                far = "" if wanted.reachable else " (beyond the tools)"
                self.missed.append(f"{one.target.name}: {wanted.name}: {wanted.tell}{far}")
        self.false += [f"{one.target.name}: {title}" for title in one.false]
        self.troubles += [f"{one.target.name}: {trouble}" for trouble in one.outcome.troubles]

    def as_data(self) -> dict[str, Any]:
        """As JSON; a share is None where there is nothing to divide by."""
        return {
            "targets": self.targets,
            "seeded": self.wanted,
            "found": self.found,
            "recall": share(self.found, self.wanted),
            "reachable": self.reachable,
            "recall_of_reachable": share(self.found - self.beyond, self.reachable),
            "items": self.items,
            "precision": share(self.true, self.items),
            "titles_true": share(self.titled, self.true - self.untitled),
            "first_proof_s": min(self.firsts, default=None),
            "calls": self.calls,
            "writes": self.writes,
            "seconds": round(self.seconds, 1),
            "classes": dict(sorted(self.classes.items())),
            "missed": self.missed,
            "false": self.false,
            "troubles": self.troubles,
        }


def share(part: int, whole: int) -> float | None:
    """A share to three digits."""
    return round(part / whole, 3) if whole else None


def tallied(results: Iterable[Judged]) -> dict[tuple[str, str], FinderTally]:
    """Sums by finder and kind of target, in the order of their first result."""
    tallies: dict[tuple[str, str], FinderTally] = {}
    for one in results:
        tallies.setdefault((one.finder, one.target.kind), FinderTally()).add(one)
    return tallies


def union(results: Sequence[Judged], finders: Iterable[str]) -> int:
    """How many defects at least one of these finders found."""
    wanted = set(finders)
    return len({(one.target.name, name) for one in results if one.finder in wanted for name in one.found})
