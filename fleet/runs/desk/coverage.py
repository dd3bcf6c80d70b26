"""What a run looked at, what it did not, and why: a blind run is not a success. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fleet.runs.desk.plan import Plan, State

CoverageData = dict[str, list[dict[str, Any]]]
"""Coverage as JSON: the rows of each group."""
_WHERE: Mapping[State, str] = {
    "healthy": "looked",
    "finding": "looked",
    "not_applicable": "not_applicable",
    "skipped": "refused",
    "inconclusive": "could_not",
    "undecided": "undecided",
    "pending": "could_not",
}


@dataclass(frozen=True, slots=True)
class ProbeCoverage:
    """One probe and the reason for its group; "" if it was looked at."""

    probe: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeftPart:
    """Something else that the run did not look at, or not fully: an explorer's questions, a description.

    `cut`: a limit left it, and another run may reach it.
    """

    part: str
    reason: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """The groups, with every probe of a plan exactly once in those before the last two."""

    looked: tuple[ProbeCoverage, ...] = ()
    not_applicable: tuple[ProbeCoverage, ...] = ()
    refused: tuple[ProbeCoverage, ...] = ()
    could_not: tuple[ProbeCoverage, ...] = ()
    undecided: tuple[ProbeCoverage, ...] = ()
    """Probes whose expectation cannot be decided on the answers: a failure of the probe."""
    unexplored: tuple[ProbeCoverage, ...] = ()
    """Parts of the platform, beyond the probes, that explorers could not look at."""
    left: tuple[LeftPart, ...] = ()
    """What a limit of the run, or of the platform, left."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        outcome: str = "",
        unexplored: Mapping[str, str] | None = None,
        left: Iterable[LeftPart] = (),
    ) -> Coverage:
        """Coverage of a plan; an untried probe names the outcome that ended the run before it.

        `unexplored`: why by part.
        """
        found: dict[str, list[ProbeCoverage]] = {}
        for item in plan.items:
            pending = f"not tried: the run ended {outcome}" if outcome else "not tried"
            reason = pending if item.state == "pending" else item.reason
            found.setdefault(_WHERE[item.state], []).append(ProbeCoverage(item.id, reason))
        parts = (unexplored or {}).items()
        found["unexplored"] = [ProbeCoverage(part, why) for part, why in parts]
        return cls(**{word: tuple(rows) for word, rows in found.items()}, left=tuple(left))

    def as_data(self) -> CoverageData:
        """As JSON."""
        return {word: list(map(dict, rows)) for word, rows in asdict(self).items()}
