"""What came of decisions: how their confidence compares with the answers that their calls had. Pure, but for
`read_scored`, which reads the records of runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from fleet.drivers.session import cause_of
from fleet.events.chain import unlinked
from fleet.events.recorded import lines
from fleet.runs.call.confidence import is_answered
from fleet.runs.call.sealed import TRAJECTORY

_READ = (b'"decision.made"', b'"tool.responded"')


class ScoredCall(NamedTuple):
    """A call, the number and the score of its decision, and whether it had an answer that can be judged."""

    decision: int
    score: float
    answered: bool


def scored(events: Iterable[Mapping[str, Any]], first: int = 0) -> Iterator[ScoredCall]:
    """The calls of one trajectory, their decisions numbered behind `first`; what a rule or a count of looks
    decides (`threshold crossing`) leads to none."""
    decision, score = first, None
    for event in events:
        if event.get("type") == "decision.made" and event["decision_type"] != "threshold crossing":
            taken = event["confidence_score"] > event["threshold"]
            decision, score = decision + 1, event["confidence_score"] if taken else None
        elif event.get("type") == "tool.responded" and score is not None:
            answered = is_answered(cause_of(event["result"]))
            yield from [] if answered is None else [ScoredCall(decision, score, answered)]


def brier(calls: Sequence[ScoredCall]) -> float:
    """The mean square of score less outcome (Brier 1950): 0 is perfect, 0.25 what a constant half has."""
    return sum((one.score - one.answered) ** 2 for one in calls) / len(calls)


def read_scored(folders: Iterable[Path]) -> tuple[int, list[ScoredCall]]:
    """The number of runs among these folders that have scored calls, and those."""
    runs, calls = 0, list[ScoredCall]()
    for folder in folders:
        found = list(scored(_events(folder / TRAJECTORY), calls[-1].decision if calls else 0))
        runs, calls = runs + bool(found), calls + found
    return runs, calls


def calibration(calls: Sequence[ScoredCall]) -> dict[str, Any]:
    """The figures of a report; {} without a call."""
    if not calls:
        return {}
    return {
        "decisions": len({one.decision for one in calls}),
        "calls": len(calls),
        "answered": sum(one.answered for one in calls),
        "mean_confidence": round(sum(one.score for one in calls) / len(calls), 3),
        "brier": round(brier(calls), 3),
    }


def _events(path: Path) -> Iterator[dict[str, Any]]:
    for line in lines(path):
        if any(kind in line.text for kind in _READ):
            with suppress(ValueError):
                yield json.loads(unlinked(line.text))
