"""The stop conditions: every one alone, every pair in its order, and what can never happen."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.gate.model import Rung
from fleet.personas.model import FailFast, PolicySection
from fleet.runs.desk.state import Plan, PlanItem
from fleet.runs.desk.stop_conditions import CONDITIONS, MAX_BYTES, RunFacts, next_item, retries_left, stop
from tests.runs.table import look

PLAN = Plan.of([look("a"), look("b"), look("c")])
DONE = Plan(tuple(PlanItem(id_, "healthy", 1) for id_ in "abc"))
ACTS = Plan((PlanItem("a", rung=Rung.EXERCISE), PlanItem("b", rung=Rung.PROPOSE)))
FRESH = RunFacts(plan=PLAN, rung=Rung.OBSERVE)
POLICY = PolicySection(max_turns_per_run=4)

ALONE: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "kill_switch": ({"stop": "STOP is set"}, ("kill_switch", "stopped", "STOP is set")),
    "iteration": ({"turns": 4}, ("iteration", "iteration_budget", "max_turns_per_run = 4")),
    "model_time": (
        {"late": True, "plan": PLAN},
        ("model_time", "deadline_exceeded", "the rest of the time is for the playbook"),
    ),
    "repeated_failure": (
        {"failed": 3, "last_failure": "refusal"},
        ("repeated_failure", "agent_stuck", "3 failed turns in a row, last: refusal"),
    ),
    "size": ({"size": MAX_BYTES}, ("size", "budget_exhausted", f"the trajectory has {MAX_BYTES} bytes")),
    "plan_complete": ({"plan": DONE}, ("plan_complete", "done", "")),
    "awaiting_human": (
        {"plan": ACTS},
        (
            "awaiting_human",
            "awaiting_human",
            "2 probes need a higher rung than observe: a person must raise the dial",
        ),
    ),
    "no_progress": ({"stale": 6}, ("no_progress", "no_progress", "6 turns with the same open probes")),
}


def test_a_fresh_run_may_begin() -> None:
    assert stop(FRESH, POLICY) is None
    assert stop(FRESH, PolicySection()) is None


@pytest.mark.parametrize("name", ALONE)
def test_each_condition_ends_a_run_for_its_own_reason(name: str) -> None:
    changes, expected = ALONE[name]
    found = stop(replace(FRESH, **changes), POLICY)
    assert found is not None
    assert (found.reason, found.outcome, found.detail) == expected


@pytest.mark.parametrize(("first", "second"), list(combinations(ALONE, 2)))
def test_of_two_conditions_the_earlier_one_is_the_reason(first: str, second: str) -> None:
    facts = replace(FRESH, **(ALONE[second][0] | ALONE[first][0]))
    if (first, second) == ("plan_complete", "awaiting_human"):
        facts = replace(facts, plan=DONE)
    found = stop(facts, POLICY)
    assert found is not None
    assert found.reason == first


def test_there_is_no_condition_without_a_test() -> None:
    assert [condition.__name__.lstrip("_") for condition in CONDITIONS] == list(ALONE)


@pytest.mark.parametrize(
    ("changes", "over"),
    [
        ({"turns": 3}, False),
        ({"failed": 2, "last_failure": "refusal"}, False),
        ({"timeouts": 4, "last_failure": "turn_timeout"}, False),
        ({"timeouts": 5, "last_failure": "turn_timeout"}, True),
        ({"stale": 5}, False),
        ({"size": MAX_BYTES - 1}, False),
        ({"plan": ACTS, "rung": Rung.EXERCISE}, False),
        ({"plan": Plan((PlanItem("a", "healthy", 1), PlanItem("b", rung=Rung.EXERCISE)))}, False),
        ({"plan": Plan((PlanItem("a", "skipped", 1), PlanItem("b", rung=Rung.EXERCISE)))}, True),
        ({"plan": DONE, "explores": True, "stale": 5}, False),
        ({"plan": DONE, "explores": True, "stale": 6}, True),
        ({"stale": 6, "patience": 24}, False),
        ({"plan": Plan(())}, False),
        ({"plan": DONE, "explores": True, "late": True}, False),
        ({"turns": 2, "model": True}, True),
        ({"turns": 1, "model": True}, False),
        ({"turns": 3, "model": True, "plan": DONE, "explores": True}, False),
    ],
)
def test_right_before_and_right_at_the_limit(changes: dict[str, Any], over: bool) -> None:
    assert (stop(replace(FRESH, **changes), POLICY) is not None) is over


def test_five_timeouts_are_latency() -> None:
    found = stop(replace(FRESH, timeouts=5, last_failure="turn_timeout"), POLICY)
    assert found is not None
    assert (found.outcome, found.detail) == ("budget_exhausted", "inference_latency")


@pytest.mark.parametrize(
    ("fast", "failure", "over"),
    [
        (FailFast(), "provider_error", False),
        (FailFast(on_chat_error=True), "provider_error", True),
        (FailFast(on_chat_error=True), "invalid_action_exhausted", False),
        (FailFast(on_validation_failure=True), "invalid_action_exhausted", True),
        (FailFast(on_validation_failure=True), "schema_exhausted", True),
        (FailFast(on_validation_failure=True), "refusal", False),
    ],
)
def test_what_a_persona_fails_fast_on_ends_the_run_at_once(fast: FailFast, failure: str, over: bool) -> None:
    facts = replace(FRESH, failed=1, last_failure=failure)
    assert (stop(facts, PolicySection(fail_fast=fast)) is not None) is over


def worked(plan: Plan, ids: str) -> Plan:
    for id_ in ids:
        plan = plan.with_item(id_, "healthy", tried=True)
    return plan


def test_strict_works_on_one_probe_and_bounded_on_so_many() -> None:
    strict = PolicySection(mode="strict_incremental")
    bounded = PolicySection(mode="bounded_batch", max_features_per_run=2)
    assert [next_item(replace(FRESH, plan=worked(PLAN, ids)), strict) for ids in ("", "a")] == ["a", ""]
    assert [next_item(replace(FRESH, plan=worked(PLAN, ids)), bounded) for ids in ("", "a", "ab")] == [
        "a",
        "b",
        "",
    ]
    found = stop(replace(FRESH, plan=worked(PLAN, "ab")), bounded)
    assert found is not None
    assert (found.outcome, found.detail) == (
        "iteration_budget",
        "max_features_per_run = 2: 1 of 3 probes not tried",
    )
    assert stop(replace(FRESH, plan=worked(PLAN, "a")), bounded) is None


def test_a_full_batch_still_gets_its_second_looks() -> None:
    bounded = PolicySection(mode="bounded_batch", max_features_per_run=1, retry_budget=1)
    plan = PLAN.with_item("a", "inconclusive", tried=True)
    assert next_item(replace(FRESH, plan=plan), bounded) == "a"
    assert stop(replace(FRESH, plan=plan), bounded) is None
    assert next_item(replace(FRESH, plan=plan, retries_used=1), bounded) == ""


@given(
    outcomes=st.lists(st.sampled_from(["healthy", "inconclusive", "skipped"]), max_size=60),
    turns=st.integers(1, 12),
    features=st.integers(1, 4),
    retries=st.integers(0, 3),
)
def test_no_run_exceeds_its_limits_and_every_run_ends(
    outcomes: list[Any], turns: int, features: int, retries: int
) -> None:
    """A playbook under any luck: turns, probes and second looks are counted for the run, not for a probe."""
    policy = PolicySection(
        mode="bounded_batch", max_turns_per_run=turns, max_features_per_run=features, retry_budget=retries
    )
    facts, luck = replace(FRESH, rung=Rung.PROPOSE), iter(outcomes)
    for _ in range(100):
        probe = next_item(facts, policy)
        if stop(facts, policy) is not None or not probe:
            break
        item = facts.plan.get(probe)
        assert item is not None
        facts = replace(
            facts,
            plan=facts.plan.with_item(probe, next(luck, "healthy"), tried=True),
            turns=facts.turns + 1,
            retries_used=facts.retries_used + (item.tries > 0),
        )
    else:
        raise AssertionError("it never ends")
    assert facts.turns <= turns
    assert facts.plan.tried() <= features
    assert sum(max(0, item.tries - 1) for item in facts.plan.items) <= retries
    assert retries_left(policy, facts.retries_used) >= 0
