"""Each step of the fix gate removed in turn: tests of the default suite fail. The long form (`make fix`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.fix.model import GateStep
from tests.fix.without_step import REMOVED, WITHOUT

pytestmark = [
    pytest.mark.skipif(not os.environ.get("QA_FIX_FULL"), reason="a run of its own for each step: make fix"),
    pytest.mark.timeout(600),
]
TESTS = "tests/fix/test_gate_steps.py"
ROOT = Path(__file__).resolve().parents[2]


def failing(without: str) -> list[str]:
    """The tests that fail without a step; a run that could not be made is an error."""
    words = ("-q", "-rfE", "--no-header", "--tb=no", "-p", "tests.fix.without_step", TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env=os.environ | {WITHOUT: without},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    rows = [row for row in done.stdout.splitlines() if row.startswith(("FAILED", "ERROR"))]
    return [row.split("::", 1)[1].partition(" - ")[0] for row in rows]


def test_every_step_can_be_removed() -> None:
    assert set(REMOVED) == set(GateStep)
    assert failing("") == []


@pytest.mark.parametrize("step", GateStep)
def test_without_a_step_a_test_fails(step: GateStep) -> None:
    found = failing(step)
    print(f"\n{step:<18}{len(found):>3} tests fail, such as {found[0] if found else '-'}")
    assert found
