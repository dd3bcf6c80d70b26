"""What a call may do to a platform at worst: its technique, by confidentiality, integrity and availability.

This table is the reviewed list of everything that the fleet can do; `docs/reference/tools.md` shows it. A
call without a row is refused. Each dimension says what is left of it at worst, from 10 (nothing is lost) to
0; the lowest one decides the level. What hangs on the host lowers them (`[hosts]` of a profile). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from fleet.config.escalation import Level
from fleet.config.scope import Criticality
from sandbox.spec import SAFE, Effect

REVIEWED = date(2026, 11, 28)
"""When a person last read this table against the tools: each quarter, and with each new one."""
REVIEW_DAYS = 92
_FLOORS: tuple[tuple[int, Level], ...] = ((8, "low"), (6, "medium"), (3, "high"), (0, "critical"))
_WEIGHTS = (0.3, 0.4, 0.3)


@dataclass(frozen=True, slots=True)
class Technique:
    """One thing that a call can be, with its scores and how it is undone."""

    name: str
    confidentiality: int
    integrity: int
    availability: int
    undone: str
    why: str

    @property
    def scores(self) -> tuple[int, int, int]:
        return self.confidentiality, self.integrity, self.availability

    @property
    def level(self) -> Level:
        """By the dimension of which least is left."""
        return next(level for floor, level in _FLOORS if min(self.scores) >= floor)

    def __str__(self) -> str:
        return f"{self.level} {'/'.join(map(str, self.scores))}"

    @property
    def weighted(self) -> float:
        """The mean by weights, for comparing techniques of one level."""
        return round(sum(score * weight for score, weight in zip(self.scores, _WEIGHTS, strict=True)), 1)

    def at(self, criticality: Criticality, effect: Effect) -> Technique:
        """The same at a host on which more hangs: acts count one worse in production, everything two worse
        where a host is critical."""
        less = (
            2 if criticality == "critical" else int(effect is Effect.ACT and criticality != "non-production")
        )
        kept = [max(0, score - less) for score in self.scores]
        return replace(self, confidentiality=kept[0], integrity=kept[1], availability=kept[2])


_NOTHING = "nothing to undo"
TECHNIQUES: Mapping[str, Technique] = {
    one.name: one
    for one in (
        Technique("qa_compile", 10, 10, 10, _NOTHING, "a compiler of ours reads a program, inside the jail"),
        Technique("qa_fuzz", 10, 10, 10, _NOTHING, "the same many times, inside the jail"),
        Technique("qa_chain", 10, 10, 9, _NOTHING, "a view of a contract, asked of the node"),
        Technique("qa_fetch GET", 8, 9, 8, _NOTHING, "what a visitor reads; the page may count it"),
        Technique("qa_fetch HEAD", 9, 9, 8, _NOTHING, "as GET, without the body"),
        Technique("qa_fetch OPTIONS", 9, 9, 8, _NOTHING, "what a page permits"),
        Technique("qa_browse", 8, 8, 8, _NOTHING, "a page with what its scripts ask for"),
        Technique(
            "qa_mcp look", 8, 8, 8, _NOTHING, "what a server of tools offers, and tools that only read"
        ),
        Technique(
            "qa_create", 10, 7, 8, "the name is released when the run settles", "a name in the registry"
        ),
        Technique(
            "qa_publish",
            10,
            7,
            8,
            "the name is released when the run settles",
            "a program under a name of ours",
        ),
        Technique(
            "qa_call",
            8,
            6,
            7,
            "what an agent remembers stays",
            "a turn of an agent, paid from its free credit",
        ),
        Technique(
            "qa_report",
            7,
            7,
            10,
            "an entry of a log stays; a later one corrects it",
            "an entry on the feedback log",
        ),
        Technique(
            "qa_fetch POST", 7, 6, 7, "deleted where the answer names what was made", "a form or a new record"
        ),
        Technique("qa_fetch PUT", 7, 5, 7, "not undone", "a record is written over"),
        Technique("qa_fetch PATCH", 7, 5, 7, "not undone", "a record is changed"),
        Technique("qa_fetch DELETE", 8, 3, 7, "not undone", "a record is removed"),
        Technique(
            "qa_account",
            4,
            5,
            7,
            "accounts remove what they made, and themselves where the platform lets them",
            "accounts are made, and one asks for what is another's",
        ),
        Technique("qa_mcp act", 7, 5, 7, "not undone", "a tool of a server that changes something"),
    )
}


def technique_of(tool: str, effect: Effect, args: Mapping[str, Any]) -> Technique | None:
    """The row of a call; None when nobody has classified it."""
    method, kind = str(args.get("method", "GET")), "act" if effect is Effect.ACT else "look"
    if effect is Effect.ACT and method in SAFE:  # a header makes it another one
        method = "DELETE"
    names = (tool, f"{tool} {method}", f"{tool} {kind}")
    return next((TECHNIQUES[name] for name in names if name in TECHNIQUES), None)


def reviewed(today: date) -> str:
    """When the table was reviewed last, and whether that is more than a quarter ago."""
    late = (today - REVIEWED).days > REVIEW_DAYS
    rest = f", more than {REVIEW_DAYS} days ago: look for a newer release" if late else ""
    return f"reviewed on {REVIEWED}{rest}"
