"""`fleet items verify` over a list on disk; its run is in tests/runs/test_retest_all.py and tests/e2e."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.cli.items import items
from fleet.cli.items.verify import ItemLook
from fleet.findings.recurrence import Recurrence
from fleet.runs.run import RunReport
from tests.cli.test_worklist_command import AT, call, state

__all__ = ("state",)


def test_a_strangers_item_is_not_run_again(state: Path) -> None:
    error = call("verify", "5555", app=items.app).exception
    assert getattr(error, "exit_code", None) == 5
    assert str(error) == "item 555555555555 is a stranger's: what a stranger wrote is never run"
    assert "no item 'beef'" in str(call("verify", "beef", app=items.app).exception)


REPORT = RunReport(
    run="r2",
    persona="qa-retest",
    outcome="blind",
    detail="none reached: HTTP 503",
    findings=(),
    calls=3,
    seconds=1.0,
    settled=True,
)
BEFORE = Recurrence().shown(AT, "r1")


@pytest.mark.parametrize(
    ("after", "verdict", "why"),
    [
        (BEFORE.clean(AT, "r2"), "clean", ""),
        (BEFORE.shown(AT, "r2"), "shown", ""),
        (BEFORE.unreached(AT, "HTTP 503"), "unreached", "HTTP 503"),
        (BEFORE, "unreached", "blind none reached: HTTP 503"),
        (BEFORE.clean(AT, "r0"), "unreached", "blind none reached: HTTP 503"),
    ],
)
def test_a_look_is_told_from_what_its_run_left(after: Recurrence, verdict: str, why: str) -> None:
    assert ItemLook.of(REPORT, BEFORE, after) == ItemLook("r2", verdict, why)  # type: ignore[arg-type]
