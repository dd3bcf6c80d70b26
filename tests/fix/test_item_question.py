"""The gate asks an item's own question where the journal has it: what a probe expected is not on the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.errors import FixError
from fleet.findings.repro import ReproCall, write_repro
from fleet.findings.sighting import lead
from fleet.fix.fix_pass import Fixing
from fleet.fix.gate.judging import item_judge
from fleet.fix.model import GateReport
from fleet.fix.proposal_row import task_of
from fleet.personas.model import Probe, Step
from fleet.runs.proof.item_questions import ItemQuestion
from fleet.store.rows import FindingRow
from tests.doubles.fix import MemoryParts
from tests.fix import sample
from tests.fix.homes import PASSED, FixHome, home
from tests.fix.tasks import FP, item

pytestmark = pytest.mark.anyio

ARGS = {"source": "fn f() {}"}
TITLE = f"{lead('qa_compile', ARGS)}: accepted"
"""As a finding of a probe's expectation is titled."""
PROBE = Probe(
    id="no-empty-body",
    severity="low",
    surface="compiler",
    steps=(Step(tool="qa_compile", args=ARGS),),
    expect='result.outcome != "accepted"',
    finding="a function without a body is accepted",
)


class AskedParts(MemoryParts):
    """Keeps the question that its gate was given."""

    question: ItemQuestion | None = None

    async def gate(self, *words: Any, question: ItemQuestion | None = None, **more: Any) -> GateReport:
        self.question = question
        return await super().gate(*words, **more)


async def proposed(here: FixHome) -> ItemQuestion | None:
    """A run for the item; the question that the gate was given."""
    one = item(title=TITLE, repro=write_repro([ReproCall("qa_compile", ARGS)]))
    here.parts, here.item = AskedParts(steps=PASSED), FP
    fixing: Any = Fixing(here, lambda: here.parts, here.tokens)  # type: ignore[arg-type]
    said = await fixing.propose(await here.begin("r1"), (one,), "qa-fix@manual:x")
    assert said.startswith("open: ")
    task = await task_of(here, one, "r1")
    if here.parts.question is None:
        with pytest.raises(FixError, match="its question is not known here"):
            item_judge(task, sample.PROFILE)
    else:
        assert item_judge(task, sample.PROFILE, here.parts.question).question.probe == PROBE
    return here.parts.question


async def test_the_journal_knows_what_a_probe_expected(tmp_path: Path) -> None:
    async with home(tmp_path) as here:
        await here.begin("found")
        data = {"platform": "p", "probe": PROBE.model_dump(mode="json")}
        row = FindingRow(
            run_id="found", fingerprint=FP, state="posted", surface="compiler", title=TITLE, data=data
        )
        await here.journal.add_finding(row)
        question = await proposed(here)
        assert question is not None
        assert question.probe.expect == PROBE.expect


async def test_without_the_journal_nothing_is_made_up(tmp_path: Path) -> None:
    async with home(tmp_path) as here:
        assert await proposed(here) is None
