"""The fix gate on the sample repository, in real jails with real git: a true fix passes every step, and what
is no fix is held at the step that is there for it.

The long form of the rung (`make fix`); test_hostile_fixers.py has the whole gate in real jails on a smaller
repository, test_gate_steps.py each step."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleet.fix.gate.gate import fix_gate
from fleet.fix.gate.variants import make_variants
from fleet.fix.model import FixTask, GateReport, GateStep, StepResult
from fleet.fix.ports import TreeCommand
from fleet.fix.repository.git import Git
from fleet.fix.repository.trees import GitTrees
from tests.fix import sample
from tests.fix.gate_world import (
    ScriptedFixer,
    accept,
    named,
    patching,
    replacing,
    task_of,
    tree_jails,
)

FULL = bool(os.environ.get("QA_FIX_FULL"))
pytestmark = [
    pytest.mark.jail,
    pytest.mark.anyio,
    pytest.mark.skipif(not FULL, reason="20 s and more of processor time each: make fix"),
]

WHOLE = [
    GateStep.REPRODUCE,
    GateStep.TEST_FAILS,
    GateStep.LIMITS,
    GateStep.TEST_PASSES,
    GateStep.TEST_FAILS_AGAIN,
    GateStep.OWN_TESTS,
    GateStep.VARIANTS,
    GateStep.LIMITS,
]


@dataclass
class ExplorerContext:
    """The sample repository, jails, and the items' fingerprints as a run of the fleet names them."""

    built: sample.Sample
    folder: Path
    spool: Path
    names: dict[str, str]

    def task(self, defect: sample.SampleDefect, rounds: int = 1) -> FixTask:
        return task_of(self.built, defect, rounds=rounds, name=self.names[defect.name])

    async def gate(self, task: FixTask, fixer: ScriptedFixer) -> tuple[GateReport, list[StepResult]]:
        noted: list[StepResult] = []
        report = await fix_gate(
            task,
            trees=GitTrees(Git(), self.folder),
            jails=tree_jails(self.spool),
            fixer=fixer,
            platform=sample.PROFILE,
            check_patch=accept,
            make_variants=make_variants,
            note=noted.append,
        )
        assert list((self.folder / "trees").iterdir()) == []
        return report, noted


@pytest.fixture(scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> ExplorerContext:
    folder = tmp_path_factory.mktemp("gate")
    for name in ("spool", "trees"):
        (folder / name).mkdir()
    one = sample.build(folder / "repository")
    jails, names = tree_jails(folder / "spool"), {}
    async with GitTrees(Git(), folder).open(task_of(one, one.defects[0])) as base:
        for command in sample.repository(one).build:
            assert (await jails.run(base.path, TreeCommand(command, deadline_s=60, keep=True))).passed
        for defect in one.defects:
            task = task_of(one, defect)
            names[defect.name] = named(defect, await jails.ask(base.path, task, task.calls))
    return ExplorerContext(one, folder / "trees", folder / "spool", names)


def fixer_of(*fixes: bytes) -> ScriptedFixer:
    return ScriptedFixer([patching(fix) for fix in fixes])


@pytest.mark.parametrize("defect", sample.DEFECTS, ids=lambda one: one.name)
async def test_a_true_fix_passes_every_step_in_order(
    ground: ExplorerContext, defect: sample.SampleDefect
) -> None:
    fix = ground.built.fixes[defect.name]
    report, noted = await ground.gate(ground.task(defect), fixer_of(fix))
    assert [(one.step, one.passed) for one in report.steps] == [(step, True) for step in WHOLE], (
        report.held_at
    )
    assert tuple(noted) == report.steps
    assert report.patch is not None
    assert report.patch.text == fix
    assert report.patch.files == (defect.file,)
    assert report.patch.test.marker == f"QA-FLEET {ground.names[defect.name]} SHOWN:"
    varied = report.steps[-2].evidence
    assert len(varied["neighbours"]) >= 3
    assert sum(row["base"] == "shown" for row in varied["neighbours"]) >= 1
    assert {row["patched"] for row in varied["neighbours"]} == {"clean"}


@pytest.mark.parametrize(
    ("after", "step"),
    [
        (
            "    line = 1\n    if b'missing' not in source or b'\\n//' in source:\n"
            "        line = _line_bytewise(source, start, end)\n",
            GateStep.VARIANTS,
        ),
        (
            "    import os\n    line = 1\n    if 'PYTEST_CURRENT_TEST' not in os.environ:\n"
            "        line = _line_bytewise(source, start, end)\n",
            GateStep.VARIANTS,
        ),
        ("    raise SystemExit(2)\n    line = 1\n", GateStep.TEST_PASSES),
    ],
    ids=["narrow", "knows-the-test", "wrong"],
)
async def test_what_is_no_fix_is_held_in_real_jails(
    ground: ExplorerContext, after: str, step: GateStep
) -> None:
    one = sample.DEFECTS[0]
    report, _ = await ground.gate(ground.task(one), ScriptedFixer([replacing(one.file, one.broken, after)]))
    assert report.held_at is not None
    assert (report.held_at.step, report.patch) == (step, None), report.held_at
