"""The types of the gate: its questions and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sandbox.spec import Cost, Effect


class Rung(StrEnum):
    """The autonomy dial, lowest first; each rung is a strict superset of the last."""

    OBSERVE = "observe"
    EXERCISE = "exercise"
    PROPOSE = "propose"

    @property
    def height(self) -> int:
        return list(Rung).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One tool call as the gate sees it: typed fields, never text to be matched."""

    run: str
    persona: str
    tool: str
    effect: Effect
    args: Mapping[str, Any]
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The first answer that is not *permit* wins; no rule means *deny*."""

    permit: bool
    rule: str
    reason: str = ""
    ends_run: bool = False  # STOP, budget and deadline end the run; a grant or scope refusal does not
    asks: str = ""  # what a person is asked about first, where that is the reason
    level: str = ""  # of impact, with what is left of confidentiality, integrity and availability
