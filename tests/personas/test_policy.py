"""The run policy of a persona file: three rules in fharness's words, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.app.persona_sets import load, roster
from fleet.errors import PersonaError
from fleet.runs.desk.stop_conditions import limit_of

FILE = """\
+++
name = "qa-probe"
surface = "ux"
tools = []
{policy}
+++
You are qa-probe.
"""


def problem(folder: Path, policy: str) -> PersonaError | None:
    path = folder / "qa-probe.md"
    path.write_text(FILE.format(policy=policy))
    try:
        load(path)
    except PersonaError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("policy", "key", "message"),
    [
        (
            "policy = { max_turns_per_run = 0 }",
            "policy.max_turns_per_run",
            "run policy requires max_turns_per_run >= 1",
        ),
        (
            'policy = { mode = "strict_incremental", max_features_per_run = 2 }',
            "policy.max_features_per_run",
            "run policy strict mode requires max_features_per_run = 1",
        ),
        (
            'policy = { mode = "bounded_batch", max_features_per_run = 0 }',
            "policy.max_features_per_run",
            "run policy bounded-batch mode requires max_features_per_run >= 1",
        ),
        (
            'policy = { mode = "bounded_batch" }',
            "policy.mode",
            "run policy bounded-batch mode requires max_features_per_run >= 1",
        ),
        ("policy = { retry_budget = -1 }", "policy.retry_budget", "a budget below 0"),
        (
            'policy = { turn_timeout = "soon" }',
            "policy.turn_timeout",
            "'soon' is not a duration of at most a day",
        ),
        (
            'policy = { turn_timeout = "25h" }',
            "policy.turn_timeout",
            "'25h' is not a duration of at most a day",
        ),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_its_line(
    tmp_path: Path, policy: str, key: str, message: str
) -> None:
    error = problem(tmp_path, policy)
    assert error is not None
    assert (error.line, error.key, error.reason) == (5, key, message)
    assert error.remedy


@pytest.mark.parametrize(
    "policy",
    [
        "",
        "policy = {}",
        'policy = { mode = "strict_incremental" }',
        'policy = { mode = "strict_incremental", max_features_per_run = 1 }',
        'policy = { mode = "bounded_batch", max_features_per_run = 1 }',
        'policy = { mode = "unlimited_batch", max_features_per_run = 0 }',
    ],
)
def test_a_policy_that_can_be_is_read(tmp_path: Path, policy: str) -> None:
    assert problem(tmp_path, policy) is None


def test_every_persona_of_ours_may_look_at_all_of_its_probes() -> None:
    for name, one in roster()[0].items():
        limit, policy = limit_of(one.persona.policy), one.persona.policy
        assert limit is None or limit >= len(one.persona.probe), name
        assert policy.max_turns_per_run >= len(one.persona.probe) + policy.retry_budget, name
