"""The plan of a run: its probes, and the state of each. `PLAN.md` shows it, `state.json` keeps it.

Whether a run continues depends on this and on the stop conditions (stop_conditions.py), not on the driver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from fleet.errors import ConfigError
from fleet.gate.model import Rung
from fleet.gate.rules import LOWEST
from fleet.personas.model import Probe
from fleet.text import line, markdown_code
from sandbox.tools import TOOLS

State = Literal["pending", "healthy", "finding", "skipped", "inconclusive", "undecided", "not_applicable"]
"""`healthy` and `finding`: looked at; `skipped`: refused; `inconclusive`: could not look;
`undecided`: the probe's expectation cannot be decided on the answers;
`not_applicable`: the platform lacks the part."""
STATES: tuple[State, ...] = get_args(State)
LOOKED: frozenset[State] = frozenset({"healthy", "finding"})

_MARKS: dict[State, str] = {
    "pending": " ",
    "healthy": "x",
    "finding": "!",
    "skipped": "-",
    "inconclusive": "?",
    "undecided": "E",
    "not_applicable": "~",
}


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One probe. `tries` counts looks at it; `rung` is the lowest that permits all its calls."""

    id: str
    state: State = "pending"
    tries: int = 0
    reason: str = ""
    rung: Rung = Rung.OBSERVE


@dataclass(frozen=True, slots=True)
class Plan:
    """All items in working order. Immutable."""

    items: tuple[PlanItem, ...]

    @classmethod
    def of(cls, probes: Iterable[Probe]) -> Plan:
        """The plan of a new run; ConfigError for duplicate ids or a probe without steps."""
        items: list[PlanItem] = []
        for probe in probes:
            if not probe.steps:
                raise ConfigError(f"probe {probe.id!r} has no steps", remedy="give it at least one")
            items.append(PlanItem(probe.id, rung=_rung(probe)))
        return cls(tuple(items)).born()

    def born(self) -> Plan:
        """This plan, if a run may start with it; ConfigError otherwise."""
        ids = [item.id for item in self.items]
        if "" in ids or len(set(ids)) != len(ids):
            raise ConfigError("an id in the plan is missing or used twice", remedy="give each its own id")
        for item in self.items:
            if (item.state, item.tries) != ("pending", 0):
                raise ConfigError(
                    f"item {item.id!r} begins as {item.state}", remedy="every item of a new plan must be open"
                )
        return self

    def get(self, id_: str) -> PlanItem | None:
        return next((item for item in self.items if item.id == id_), None)

    def with_item(self, id_: str, state: State, reason: str = "", *, tried: bool = False) -> Plan:
        """The plan after a look at one item; KeyError for an unknown id."""
        if self.get(id_) is None:
            raise KeyError(id_)
        return Plan(
            tuple(
                replace(item, state=state, reason=reason, tries=item.tries + tried)
                if item.id == id_
                else item
                for item in self.items
            )
        )

    def open(self, retries: int = 0) -> tuple[PlanItem, ...]:
        """Remaining items in order: untried ones, then those that may be retried."""
        untried = tuple(item for item in self.items if item.state == "pending")
        again = tuple(item for item in self.items if item.state == "inconclusive") if retries > 0 else ()
        return untried + again

    def looked(self) -> int:
        """Number of items looked at, with any result."""
        return sum(item.state in LOOKED for item in self.items)

    def tried(self) -> int:
        """Number of items worked on, without those that are not applicable."""
        return sum(item.state not in ("pending", "not_applicable") for item in self.items)

    def signature(self, retries: int = 0) -> str:
        """A digest of the open items: constant while nothing changes."""
        text = "\n".join(f"{item.id} {item.state} {item.tries}" for item in self.open(retries))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def render(self, run: str, persona: str) -> str:
        """`PLAN.md`: the same bytes for the same plan."""
        lines = [f"# Plan of run {run}, persona {persona}", ""]
        lines += [_line(item) for item in self.items] or ["(nothing planned)"]
        count = f"{self.looked()} of {len(self.items)} looked at, {len(self.open())} not tried yet"
        return "\n".join([*lines, "", count, ""])


def _line(item: PlanItem) -> str:
    shown = f"- [{_MARKS[item.state]}] {item.id}: {item.state}"
    if item.tries > 1:
        shown += f", {item.tries} tries"
    if item.state == "pending" and item.rung is not Rung.OBSERVE:
        shown += f", needs the rung {item.rung}"
    return f"{shown}: {markdown_code(line(item.reason, 300))}" if item.reason else shown


def _rung(probe: Probe) -> Rung:
    """The lowest rung that permits every step; an unknown tool needs the highest."""
    specs = [(TOOLS.get(step.tool), step.args) for step in probe.steps]
    needed = [
        LOWEST.get(spec.effect_of(args), Rung.PROPOSE) if spec else Rung.PROPOSE for spec, args in specs
    ]
    return max(needed, key=lambda rung: rung.height, default=Rung.OBSERVE)


def complete(plan: Plan, retries: int) -> bool:
    """The completion gate: something was planned, and no item is left to work on."""
    return bool(plan.items) and not plan.open(retries)


__all__ = ["LOOKED", "STATES", "Plan", "PlanItem", "State", "complete"]
