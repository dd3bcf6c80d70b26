"""How likely a call is to be answered: from what its target did lately, and never by one figure for all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet.findings.proof import TRIES, is_confirmed
from fleet.runs.call.calibration import brier, calibration, read_scored
from fleet.runs.call.confidence import (
    LATEST_S,
    PRIOR,
    THRESHOLDS,
    Confidence,
    asked_before,
    reproduced,
    score,
)
from fleet.runs.call.sealed import TRAJECTORY
from fleet.triage.outputs.period import PeriodFacts, period, period_text


def test_it_is_what_the_target_answered_in_the_last_minute_beside_what_is_usual() -> None:
    known = Confidence()
    assert score(known.of(["fetch a"], 0)) == PRIOR
    for second in range(10):
        known.add("fetch a", "timeout", second)
        known.add("fetch b", "reverted", second)  # it answered: what it says is not our matter here
        known.add("fetch c", "busy", second)  # our own machine was slow
    assert known.of(["fetch a"], 10) == {
        "a target that was not asked yet": (10.0, PRIOR),
        "calls to fetch a in the last minute": (10.0, 0.0),
    }
    assert [score(known.of([f"fetch {one}"], 10)) for one in "abc"] == [0.475, 0.975, PRIOR]
    assert score(known.of(["fetch b", "fetch a"], 10)) == 0.475, "the one that answers least counts"
    assert score(known.of(["fetch a"], 10 + LATEST_S)) == PRIOR, "what came back is asked again"


def test_a_finding_is_above_the_threshold_exactly_when_every_look_showed_it() -> None:
    for shown in range(TRIES + 1):
        likely = score(reproduced(shown, TRIES)) > THRESHOLDS["exploitation"]
        assert likely == is_confirmed(shown, TRIES)
    assert score(reproduced(0, 0)) == 0.5
    assert [score(asked_before(*each)) for each in ((0, 0), (3, 3), (5, 0))] == [PRIOR, 0.9565, 0.76]


@pytest.mark.parametrize(
    ("phase", "least"), [("enumeration", 0.3), ("identification", 0.6), ("exploitation", 0.7)]
)
def test_the_thresholds_are_those_of_the_standard(phase: str, least: float) -> None:
    assert THRESHOLDS[phase] == least  # type: ignore[index]
    assert THRESHOLDS["post-exploitation"] == 0.65


def test_what_came_of_decisions_is_counted_as_the_method_counts_it(tmp_path: Path) -> None:
    def decided(score: float, kind: str = "multi-option selection") -> dict[str, object]:
        sure = {"confidence_score": score, "threshold": 0.3}
        return {"type": "decision.made", "decision_type": kind, **sure}

    def answer(cause: str) -> dict[str, object]:
        return {"type": "tool.responded", "result": {"ok": not cause, "error_class": cause}}

    rows = [
        *(decided(0.9), answer(""), answer("timeout"), answer("busy")),
        *(decided(1.0, "threshold crossing"), answer("")),
        *(decided(0.2), answer("")),  # below its threshold: it leads to no call
    ]
    separators = (",", ":")
    text = "\n".join(json.dumps(row, separators=separators) for row in rows)
    (tmp_path / TRAJECTORY).write_text(text + '\n{"type":"tool.responded","torn')
    runs, calls = read_scored([tmp_path, tmp_path / "none"])
    assert (runs, calls) == (1, [(1, 0.9, True), (1, 0.9, False), (1, 0.9, True)])
    assert brier(calls) == pytest.approx((0.01 + 0.81 + 0.01) / 3)
    facts = PeriodFacts(platform="p", version="1", since="a", until="b", decided=calibration(calls))
    said = "1 decision: 2 of their 3 calls were answered; mean confidence 0.90, Brier score 0.28"
    assert f"decided   {said}" in list(period_text(period(facts)))
    assert calibration([]) == {}
