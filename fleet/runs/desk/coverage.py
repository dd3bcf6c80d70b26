"""What a run looked at, what it did not, and why: a blind run is not a success."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fleet.drivers.desk import ACCOUNTS
from fleet.drivers.session import RunOver
from fleet.runs.desk.state import Plan, RunState, State, StateFile

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
class SeenAs:
    """A path that accounts looked at, `accounts` of them; everything else was looked at as a visitor."""

    part: str
    accounts: int


NOT_PROBES = ("unexplored", "left", "as_whom")
"""Groups whose members are other parts of the platform."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The groups, with every probe of a plan exactly once in those before `unexplored`."""

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
    as_whom: tuple[SeenAs, ...] = ()
    """What was looked at as an account, or as two."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        outcome: str = "",
        unexplored: Mapping[str, str] | None = None,
        left: Iterable[LeftPart] = (),
        as_whom: Iterable[SeenAs] = (),
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
        groups = {word: tuple(rows) for word, rows in found.items()}
        return cls(**groups, left=tuple(left), as_whom=tuple(as_whom))

    def as_data(self) -> CoverageData:
        """As JSON."""
        return {word: list(map(dict, rows)) for word, rows in asdict(self).items()}


def coverage(folder: Path, run: str, outcome: str) -> CoverageData:
    """The probes of each group, and what was left; all groups are empty for a run that was never driven."""
    file = StateFile(folder, run)
    try:
        state = file.load() if file.path.exists() else RunState.begin(run, Plan(()))
    except RunOver:
        state = RunState.begin(run, Plan(()))
    parts = {f"{ACCOUNTS} of {url}": one.reason for url, one in state.accounts.items() if one.reason}
    parts |= {one.part: one.reason for one in state.left if one.kind == "unexplored"}
    left = (LeftPart(one.part, one.reason, one.kind == "cut") for one in state.left if one.part not in parts)
    seen: dict[str, int] = {}
    for tally in state.accounts.values():
        seen |= {path: max(count, seen.get(path, 0)) for path, count in tally.looked.items()}
    as_whom = (SeenAs(path, count) for path, count in sorted(seen.items()))
    return Coverage.of(state.plan, outcome, parts, left, as_whom).as_data()
