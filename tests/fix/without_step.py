"""A plugin for pytest: the fix gate without one of its steps, which then passes whatever it sees.

QA_FIX_WITHOUT=variants python -m pytest -p tests.fix.without_step tests/fix/test_gate_steps.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from fleet.fix.gate import gate, steps
from fleet.fix.gate.judging import BuildVerdict
from fleet.fix.gate.steps import GateBench, Results
from fleet.fix.model import CheckedPatch, GateStep, RegressionTest, StepResult
from fleet.fix.ports import TreePort
from tests.fix.scripted_build import SEEN

WITHOUT = "QA_FIX_WITHOUT"


def _passed(step: GateStep) -> StepResult:
    return StepResult(step, True, "not looked at")


def _passing(step: GateStep) -> Callable[..., Any]:
    async def passing(*_: object) -> StepResult:
        return _passed(step)

    return passing


async def _reproduced(bench: GateBench, base: TreePort) -> tuple[StepResult, Results, BuildVerdict]:
    calls = bench.task.calls
    verdict = bench.judge.item(calls, [SEEN])
    return _passed(GateStep.REPRODUCE), await bench.ask(base, calls), verdict


async def _failed(bench: GateBench, base: TreePort, test: RegressionTest) -> StepResult:
    await base.put(test.path, test.text.encode())
    return _passed(GateStep.TEST_FAILS)


def _unlimited(rounds: gate._Rounds, text: bytes) -> CheckedPatch:
    return CheckedPatch(rounds.base.base, text, rounds.test, ("any",), 1, 1)


REMOVED: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    GateStep.REPRODUCE: (steps, "reproduce", _reproduced),
    GateStep.TEST_FAILS: (steps, "test_fails", _failed),
    GateStep.LIMITS: (gate._Rounds, "_checked", _unlimited),
    GateStep.TEST_PASSES: (steps, "test_passes", _passing(GateStep.TEST_PASSES)),
    GateStep.TEST_FAILS_AGAIN: (steps, "test_fails_again", _passing(GateStep.TEST_FAILS_AGAIN)),
    GateStep.OWN_TESTS: (steps, "own_tests", _passing(GateStep.OWN_TESTS)),
    GateStep.VARIANTS: (steps, "vary", _passing(GateStep.VARIANTS)),
}

if step := os.environ.get(WITHOUT):
    setattr(*REMOVED[step])
