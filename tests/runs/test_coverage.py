"""What a run looked at decides how its command ends: nothing blind is called healthy."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.personas.model import Probe, Step
from fleet.runs.desk.coverage import Coverage, LeftPart
from fleet.runs.desk.exit_codes import exit_code
from fleet.runs.desk.state import Plan

LOOK = (Step(tool="qa_fetch", args={}),)
PLAN = Plan.of(
    Probe(id=id_, severity="low", steps=LOOK, expect="true", finding="something") for id_ in "abcdef"
)
LOOKED: dict[str, Any] = {"looked": [{"probe": "a", "reason": ""}]}


def run(outcome: str = "done", detail: str = "", findings: Any = (), **coverage: list[str]) -> dict[str, Any]:
    rows = {word: [{"probe": "p", "reason": why} for why in whys] for word, whys in coverage.items()}
    return {"outcome": outcome, "detail": detail, "findings": list(findings), "coverage": rows}


def found(state: str, **data: Any) -> dict[str, Any]:
    return {"state": state, "data": data}


def test_every_probe_is_somewhere_with_its_reason() -> None:
    plan = (
        PLAN.with_item("a", "healthy").with_item("b", "finding").with_item("c", "not_applicable", "no proxy")
    )
    plan = plan.with_item("d", "skipped", "dial").with_item("e", "inconclusive", "unreachable")
    assert Coverage.of(plan, "deadline_exceeded").as_data() == {
        "looked": [{"probe": "a", "reason": ""}, {"probe": "b", "reason": ""}],
        "not_applicable": [{"probe": "c", "reason": "no proxy"}],
        "refused": [{"probe": "d", "reason": "dial"}],
        "could_not": [
            {"probe": "e", "reason": "unreachable"},
            {"probe": "f", "reason": "not tried: the run ended deadline_exceeded"},
        ],
        "undecided": [],
        "unexplored": [],
        "left": [],
        "as_whom": [],
    }


def test_what_was_left_is_said_and_ends_the_command_as_incomplete() -> None:
    left = [LeftPart("explorer web", "asked 2 of about 9 questions", True)]
    data = Coverage.of(PLAN.with_item("a", "healthy"), "done", left=left).as_data()
    assert data["left"] == [{"part": "explorer web", "reason": "asked 2 of about 9 questions", "cut": True}]
    said = {**LOOKED, "left": data["left"]}
    assert exit_code({"outcome": "done", "detail": "", "findings": (), "coverage": said}) == 75
    said["left"] = [{"part": "description", "reason": "in YAML, not read", "cut": False}]
    assert exit_code({"outcome": "done", "detail": "", "findings": (), "coverage": said}) == 0


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (run(looked=[""]), 0),
        (run(looked=[""], not_applicable=["no proxy"], refused=["dial"]), 0),
        (run(looked=[""], findings=[found("dropped")]), 0),
        (run(looked=[""], findings=[found("posted")]), 1),
        (run(looked=[""], findings=[found("repeated")]), 1),
        (run("failed", findings=[found("confirmed")]), 1),
        (run("blind", not_applicable=["no proxy"]), 3),
        (run("blind", refused=["dial"]), 5),
        (run("awaiting_human"), 5),
        (run("stopped", looked=[""]), 5),
        (run("blind", could_not=["qa_fetch: unreachable: site: connection refused"]), 4),
        (run(looked=[""], could_not=["qa_fetch: timeout: late"]), 4),
        (run(looked=[""], could_not=["qa_fetch: busy: slow"]), 75),
        (run(looked=[""], undecided=["the expectation cannot be decided"]), 3),
        (run(looked=[""], undecided=["x"], could_not=["qa_fetch: unreachable: y"]), 3),
        (run(looked=[""], undecided=["x"], findings=[found("posted")]), 1),
        (run("jail_lost", looked=[""]), 75),
        (run("failed", looked=[""]), 75),
        (run("could_not_tell"), 4),
        (run("failed", "health check: http://n: no whole answer within 5 s"), 4),
        (run("iteration_budget", looked=[""]), 75),
        (run(looked=[""], findings=[found("unverified")]), 75),
        (run(looked=[""], findings=[found("unverified", claim={"review": True})]), 0),
    ],
)
def test_exit_codes(data: dict[str, Any], code: int) -> None:
    assert exit_code(data) == code
