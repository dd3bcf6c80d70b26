"""The cumulative risk of what is asked of a platform: points for each call by its impact, which fade. Pure.

A call counts POINTS of its level, times WEIGHTS of what hangs on its host, times 1.1 for each call of the
same technique at the same host in the same half hour, 2 at most. Points halve each half hour.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.config.escalation import Level
from fleet.config.scope import Criticality

POINTS: Mapping[Level, float] = {"low": 0.0, "medium": 1.0, "high": 5.0, "critical": 25.0}
WEIGHTS: Mapping[Criticality, float] = {
    "critical": 3.0,
    "production": 2.0,
    "unknown": 2.0,
    "non-production": 1.0,
}
RISK = "risk:"
"""Prefix of the journal's facts, by platform."""
SAVES_S = 5.0
"""Seconds after which points are kept again: a killed process loses no more."""
AGAIN, MOST_AGAIN = 1.1, 2.0
ENOUGH = 8
"""Calls of one technique after which MOST_AGAIN is reached."""
HALVES_S = 1_800.0


@dataclass(slots=True)
class CumulativeRisk:
    """Of one platform; seconds since 1970. `since` is when a person last let the tests go on."""

    points: float = 0.0
    at: float = 0.0
    since: float = 0.0
    saved: float = 0.0
    """When the points were last kept."""
    _seen: Counter[str] = field(default_factory=Counter)
    _counted: float = 0.0

    def now(self, at: float) -> float:
        """The points that are left at a moment."""
        return self.points * math.exp2(-max(0.0, at - self.at) / HALVES_S)

    def add(self, level: Level, criticality: Criticality, technique: str, at: float) -> float:
        """Count one call; the points with it."""
        if at - self._counted >= HALVES_S:
            self._seen.clear()
            self._counted = at
        again = min(AGAIN ** min(self._seen[technique], ENOUGH), MOST_AGAIN)
        self._seen[technique] += 1
        self.points, self.at = self.now(at) + POINTS[level] * WEIGHTS[criticality] * again, at
        return self.points

    @classmethod
    def read(cls, text: str | None) -> CumulativeRisk:
        """What a process before this one kept: points and when."""
        points, at = map(float, (text or "0 0").split())
        return cls(points, at)

    def reset(self, at: float) -> None:
        """Begin anew: a person let the tests go on."""
        self.points, self.at, self.since = 0.0, at, at
