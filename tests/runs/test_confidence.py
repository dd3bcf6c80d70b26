"""How likely a call is to be answered: from what its target did lately, and never by one figure for all."""

from __future__ import annotations

import pytest

from bench.confidence import brier, scored
from fleet.events.model import DecisionMade, DecisionType, ToolResponded
from fleet.findings.proof import TRIES, is_confirmed
from fleet.runs.call.confidence import (
    LATEST_S,
    METHOD,
    PRIOR,
    THRESHOLDS,
    Confidence,
    asked_before,
    reproduced,
    score,
)


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


def test_what_came_of_decisions_is_counted_as_the_method_counts_it() -> None:
    def decided(score: float, kind: DecisionType = "multi-option selection") -> DecisionMade:
        return DecisionMade(
            decision_type=kind,
            selected_action="ask",
            rationale="seen",
            confidence_score=score,
            confidence_factors={},
            threshold=0.3,
            method=METHOD,
            risk="",
            alternatives_evaluated=(),
            fallback="",
        )

    def answer(cause: str) -> ToolResponded:
        result = {"ok": not cause, "error_class": cause}
        return ToolResponded(call=1, tool="qa_fetch", is_error=bool(cause), result=result, seconds=0.1)

    calls = list(
        scored(
            [
                *(decided(0.9), answer(""), answer("timeout"), answer("busy")),
                *(decided(1.0, "threshold crossing"), answer("")),
                *(decided(0.2), answer("")),
            ]
        )
    )
    assert calls == [(1, 0.9, True), (1, 0.9, False), (1, 0.9, True)], "one below its threshold makes no call"
    assert brier(calls) == pytest.approx((0.01 + 0.81 + 0.01) / 3)
