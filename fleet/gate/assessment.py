"""What a call of medium impact or more risks, before it is made, by a published method (docs/safety.md).

Four dimensions, each with a likelihood and an impact from 1 to 5 and what is done against it; the overall
risk is the largest product. What is above `limits.risk_most` of the profile is refused. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from fleet.config.escalation import LEVELS, Level
from fleet.config.scope import Criticality
from fleet.gate.impact import ATTACK, FILE, Technique
from sandbox.spec import Effect

METHOD = "1, 2026-11-29"
"""Version and day of the method; another one is another version."""
ASSESSED: tuple[Level, ...] = LEVELS[1:]
_HANGS: dict[Criticality, tuple[int, int]] = {
    "non-production": (1, 1),
    "production": (2, 3),
    "unknown": (3, 3),
    "critical": (3, 5),
}


class Dimension(NamedTuple):
    """One dimension."""

    likelihood: int
    impact: int
    mitigations: str

    @property
    def risk(self) -> int:
        return self.likelihood * self.impact


class Assessment(NamedTuple):
    """All four."""

    target: Dimension
    detection: Dimension
    engagement: Dimension
    organisation: Dimension

    @property
    def overall(self) -> int:
        return max(one.risk for one in self)


def assess(technique: Technique, criticality: Criticality, effect: Effect) -> Assessment:
    """What one call risks where it is made."""
    way = technique.name.partition(" ")[2]
    acts = effect is Effect.ACT
    likely, hurts = _HANGS[criticality]
    level = LEVELS.index(technique.level)
    return Assessment(
        target=Dimension(
            3 if acts else 2 if way == ATTACK else 1,
            min(5, 1 + level + (criticality == "critical")),
            f"rate and length by impact, looks at its health, breaker; {technique.undone}",
        ),
        detection=Dimension(
            4 if way == ATTACK else 3 if way == FILE else 2,
            2,
            "contact and reference in the User-Agent, Retry-After kept, a lock-out or a challenge ends it",
        ),
        engagement=Dimension(
            1, 2 + level, "scope, windows and never-lists judged by gate, broker and signer; they are signed"
        ),
        organisation=Dimension(
            likely, hurts, "windows, approval for the host, a person's word by impact, STOP in 5 s"
        ),
    )
