"""How far a finding's verification got, and why it is not filed."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.runs.proof.grades import graded
from fleet.store.rows import FindingRow


def row(state: Any, confirmed: int = 0, tries: int = 0, index: int = -1, **data: Any) -> FindingRow:
    return FindingRow(
        run_id="r",
        fingerprint="f" * 12,
        state=state,
        probe="p",
        persona="qa-x",
        surface="ux",
        severity="low",
        title="t",
        confirmed=confirmed,
        tries=tries,
        index=index,
        data=data,
    )


@pytest.mark.parametrize(
    ("one", "grade", "why"),
    [
        (row("posted", 3, 3, 7), "confirmed", ""),
        (row("repeated", 3, 3, 7), "confirmed", "it is on the log already: entry 7"),
        (row("repeated", 3, 3), "confirmed", "it is on the log already: by another run now"),
        (row("confirmed", 3, 3), "confirmed", "the budget of reports is spent: a later run posts it"),
        (
            row("confirmed", 3, 3, held=True),
            "confirmed",
            "the node was silent: the next run that sees it answer posts it",
        ),
        (row("flaky", 2, 3), "flaky", "it showed in 2 of 3 tries; 3 of 3 is filed"),
        (row("dropped", 0, 3), "refuted", "it showed in none of 3 tries"),
        (row("unverified", 1, 1, why="timeout: x"), "not reached", "timeout: x"),
        (row("unverified"), "not reached", "its proof could not be completed"),
        (
            row("unverified", 3, 3, claim={"title": "t"}),
            "confirmed",
            "only its driver calls it a defect: adopt or dismiss it",
        ),
        (row("raised"), "unproven", "its proof has not begun"),
    ],
)
def test_each_state_has_its_grade_and_its_reason(one: FindingRow, grade: str, why: str) -> None:
    found = graded(one)
    assert (found.grade, found.why) == (grade, why)
