"""A trial of a persona's file: what it sees is its own; nothing is posted, counted, learned or left."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleet.app.lock import only_one
from fleet.cli.personas.try_probe import undisturbed
from fleet.config import FleetConfig
from fleet.config.load import ENVIRONMENT
from fleet.errors import BudgetExceeded, TryAgain
from fleet.files import ROOT
from fleet.findings.proof import TRIES
from fleet.personas.learned import Learned
from fleet.runs.drive import with_learned
from fleet.runs.proof.item_figures import count, figures_of
from fleet.service.listeners import listeners
from fleet.store.rows import FindingRow, NewRun, SampleRow
from fleet.triage.items.unproven import unproven
from tests.runs.table import RUN, Table, look, persona, seated
from tests.runs.test_retest import FP, filed
from tests.runs.test_retest_all import Site
from tests.triage.triage_log import finding

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 27, tzinfo=UTC)
BROKEN = Site(a={"status": 500}, b={"status": 500})


async def left(table: Table) -> tuple[int, int, int]:
    """Findings of all runs, grave unproven ones in everyone's list, and what the next run would prove."""
    everyone = await table.world.journal.findings()
    waiting = await table.world.journal.unsettled("qa-paper", TRIES)
    return len(everyone), len(unproven(everyone, (), NOW)), len(waiting)


@pytest.mark.parametrize("trial", [False, True])
async def test_what_a_trial_proves_counts_nowhere(tmp_path: Path, trial: bool) -> None:
    one = persona(look("a"), look("b"))
    async with seated(tmp_path, one, answer=BROKEN, trial=trial) as table:
        await filed(table)  # an item that another run would look at again at its end
        await count(table.world, FP, lambda old: old.shown("2026-11-22T12:00:00Z", "older"))
        before = await figures_of(table.world)
        await table.drive()
        seen = await table.world.journal.findings(RUN)
        assert [(row.state, row.confirmed) for row in seen] == [("confirmed", 3)] * len(seen)
        assert seen  # the run itself says what it saw
        assert (await figures_of(table.world) == before) == trial
        await table.world.journal.finish(RUN, "done")
        assert await left(table) == ((1, 0, 0) if trial else (1 + len(seen), 0, len(seen)))
        last = await table.world.journal.last_ended("paper")
        assert [row.run_id for row in last] == ([] if trial else [RUN])
        assert (await table.world.journal.rounds("qa-paper")).ended == (0 if trial else 1)


@pytest.mark.parametrize("trial", [False, True])
async def test_what_a_trial_cannot_prove_is_in_no_other_list(tmp_path: Path, trial: bool) -> None:
    async with seated(tmp_path, persona(look("a")), trial=trial) as table:
        row = FindingRow(run_id=RUN, fingerprint=FP, severity="high", title="t", persona="qa-paper")
        await table.world.journal.add_finding(row)
        await table.world.journal.set_finding(RUN, FP, state="unverified")
        await table.world.journal.finish(RUN, "cancelled")
        assert await left(table) == ((0, 0, 0) if trial else (1, 1, 1))
        assert [one.fingerprint for one in await table.world.journal.findings(RUN)] == [FP]


async def test_a_trial_hides_no_leftover_of_another_run(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), trial=True) as table:
        journal = table.world.journal
        await journal.trigger(
            NewRun(
                run_id="older",
                persona="qa-paper",
                key="older",
                platform="paper",
                trigger="t",
                rung="",
                budget={},
            )
        )
        for run in ("older", RUN):
            row = FindingRow(run_id=run, fingerprint=FP, severity="high", title="t", persona="qa-paper")
            await journal.add_finding(row)
            await journal.set_finding(run, FP, state="unverified")
            await journal.finish(run, "done")
        assert [row.run_id for row in await journal.unsettled("qa-paper", TRIES)] == ["older"]


@pytest.mark.parametrize("trial", [False, True])
async def test_what_a_trial_measures_moves_no_baseline(tmp_path: Path, trial: bool) -> None:
    noting = look("a").model_copy(update={"note": {"answer": "result.status"}})
    async with seated(tmp_path, persona(noting), trial=trial) as table:
        row = SampleRow(measure="GET /a", own=(1.0,), control=(1.0,))
        await table.drive.runner._keep([row])
        await table.drive()
        journal = table.world.journal
        assert await journal.noted() == ({} if trial else {"answer": 1})
        assert list(await journal.past("paper")) == ([] if trial else ["GET /a"])


@pytest.mark.parametrize("trial", [False, True])
async def test_a_trial_posts_nothing_and_asks_what_its_file_says(tmp_path: Path, trial: bool) -> None:
    one = persona(look("a"))
    exploring = replace(one, persona=one.persona.model_copy(update={"explore": ("web",)}))
    async with seated(tmp_path, one, trial=trial) as table:
        known = Learned(
            fingerprint=FP,
            persona="qa-paper",
            oracle="server-error",
            title="GET {site}/b: 500",
            run="older",
            at="2026-11-22T12:00:00Z",
            probe=look("b"),
        )
        table.world.learned.keep(known)
        asked = with_learned(table.world, exploring).persona.probe
        assert len(asked) == (1 if trial else 2)
        with pytest.raises(BudgetExceeded, match="posts nothing") if trial else nullcontext():
            await table.world.chain.log.post(finding(), charge="none")


def test_beside_a_daemon_the_remedy_names_what_exists(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with only_one(tmp_path):
        (socket,) = listeners(tmp_path, None)
        with socket, pytest.raises(TryAgain) as refused:
            undisturbed(tmp_path)
    assert "STATE_DIRECTORY" in refused.value.remedy


def test_every_variable_that_a_message_names_exists() -> None:
    valid = {ENVIRONMENT + key.upper() for key in FleetConfig.model_fields}
    files = [*(ROOT / "fleet").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    variable = re.compile(rf"\b{ENVIRONMENT}[A-Z_]*[A-Z]\b")
    named = {word for path in files for word in variable.findall(path.read_text("utf-8"))}
    assert variable.findall("in QA_FLEET_STATE, or QA_FLEET_<KEY>") == ["QA_FLEET_STATE"]
    assert named <= valid, named - valid
