"""How likely it is that what a run does next brings what it is for, and what that must exceed. Pure.

The score of calls, from 0 to 1, is the share of them that get an answer which can be judged: of those to the
same target in the last minute, and of PRIOR_WEIGHT calls of which PRIOR did (docs/safety.md). Each factor is
recorded with its weight and its value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from fleet.events.model import Phase
from fleet.text import line
from sandbox.errors import OUR_FAILURES

METHOD = "1, 2026-11-29"
"""Version and day of the method; another one is another version."""
THRESHOLDS: Mapping[Phase, float] = {
    "initialization": 0.3,
    "reconnaissance": 0.3,
    "enumeration": 0.3,
    "identification": 0.6,
    "exploitation": 0.7,
    "post-exploitation": 0.65,
}
"""By phase of the run: at this or below nothing is done. The least values of the APTS."""
PRIOR, PRIOR_WEIGHT = 0.95, 10.0
"""Of a target that was not asked yet."""
LATEST, LATEST_S = 50, 60.0
"""Calls of a target that count, and for how many seconds: one that came back is asked again."""
_SILENT = frozenset({"unreachable", "timeout"})
_OURS = OUR_FAILURES - _SILENT
"""Ends of a call that lie with us or with a rule: they count neither way."""
Factors = dict[str, tuple[float, float]]
"""By name: weight and value."""


def score(factors: Mapping[str, tuple[float, float]]) -> float:
    """The mean by weights."""
    weights = sum(weight for weight, _ in factors.values())
    return round(sum(weight * value for weight, value in factors.values()) / weights, 4)


def is_answered(cause: str) -> bool | None:
    """Whether a call had an answer that can be judged; None for an end that lies with us or with a rule."""
    return None if cause in _OURS else cause not in _SILENT


def reproduced(shown: int, looks: int) -> Factors:
    """Of a finding that was shown in some of its looks: three of three are 0.8, two of three 0.6."""
    share = shown / looks if looks else 0.0
    return {"before any look": (2.0, 0.5), "looks that showed it": (float(looks), share)}


def asked_before(looks: float, told: float) -> Factors:
    """Of a question that showed something: its own answer, which counts twice what is usual, and the looks
    at it since, `told` of which could tell. What else fails at its host never keeps a proof back."""
    found: Factors = {"a question that was answered when it showed this": (2 * PRIOR_WEIGHT, PRIOR)}
    return found | ({"looks at it since": (looks, told / looks)} if looks else {})


class Confidence:
    """What one run knows of how its targets answer."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, bool]]] = {}

    def add(self, target: str, cause: str, now: float) -> None:
        """Count how a call ended (`cause_of`), at this second of the run's clock."""
        if (answered := is_answered(cause)) is not None:
            self._seen.setdefault(target, deque(maxlen=LATEST)).append((now, answered))

    def of(self, targets: Iterable[str], now: float) -> Factors:
        """The factors of calls to these targets: those of the one that answers least."""
        every = [self._of(target, now) for target in dict.fromkeys(targets)]
        return min(every or [self._of("", now)], key=score)

    def _of(self, target: str, now: float) -> Factors:
        found: Factors = {"a target that was not asked yet": (PRIOR_WEIGHT, PRIOR)}
        latest = [answered for at, answered in self._seen.get(target, ()) if now - at <= LATEST_S]
        if latest:
            name = f"calls to {line(target, 80)} in the last minute"
            found[name] = (float(len(latest)), round(sum(latest) / len(latest), 4))
        return found
