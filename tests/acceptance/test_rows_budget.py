"""Rows 8 and 31, and the limits of a day: what a run may do when its persona or the fleet spent it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from fleet.chain.ports import Charge, FeedbackPort, PostedEntry
from fleet.config import FleetDayLimits, LiveConfig
from fleet.findings.reader import read as read_entry
from fleet.gate.model import Rung
from fleet.runs.context import FleetContext
from fleet.runs.run import fire
from fleet.store.rows import NewRun
from tests.acceptance.conftest import CREATE, House, persona, probe, step

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
LOOKS = [
    probe(f"look-{n}", step("qa_fetch", url=f"{{site}}/llms.txt?n={n}"), expect="result.status == 999")
    for n in range(2)
]


def limited(world: FleetContext, **limits: int) -> FleetContext:
    budget = FleetDayLimits.model_validate(limits)
    return replace(world, live=LiveConfig(world.config.model_copy(update={"budget": budget})))


async def own_entries(world: FleetContext) -> list[str]:
    return [
        entry.text for entry in await world.chain.log.range(0, 1000) if entry.sender == world.chain.identity
    ]


async def test_row_8_no_budget_means_no_exercise_at_any_rung(house: House, tmp_path: Path) -> None:
    """Also for a persona that came past the checks of its file."""
    full = persona(
        tmp_path,
        'tools = ["qa_create", "qa_fetch"]\nbudget = { calls = 9, writes = 5 }',
        probe("mint", CREATE, expect="result.ok"),
        probe("look", step("qa_fetch", url="{site}/llms.txt"), expect="result.status == 200"),
    )
    none = replace(full, persona=full.persona.model_copy(update={"budget": None}))
    state = await house.state(tmp_path, rung=Rung.PROPOSE)
    async with house.world(state, none) as world:
        report = await fire(world, none)
        assert (report.outcome, await house.signed()) == ("done", [])
        assert await world.journal.spent(report.run) == {"calls": 1}
    (denied,) = house.said("gate.denied")
    assert (denied.tool, denied.rule, denied.reason) == (
        "qa_create",
        "budget",
        "this persona has no budget for writes",
    )


async def test_the_day_ends_a_run_and_its_closing_report_is_still_possible(
    house: House, tmp_path: Path
) -> None:
    day = "day = { calls = 1, writes = 0, reports = 0 }"
    one = persona(tmp_path, f'tools = ["qa_fetch"]\nbudget = {{ calls = 60, {day} }}', *LOOKS)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(limited(world, reports=0, writes=0), one)
        assert (report.outcome, report.settled) == ("budget_exceeded", True)
        assert report.detail == "the budget of 1 call a day of this persona is spent"
        assert await world.journal.spent(report.run) == {"calls": 1, "closing": 1}
        (entry,) = [read_entry(text) for text in await own_entries(world)]
        assert (entry.run, entry.severity) == (report.run, "info")


async def test_what_the_day_does_not_pay_stays_confirmed(house: House, tmp_path: Path) -> None:
    one = persona(tmp_path, 'tools = ["qa_fetch"]\nbudget = { calls = 60 }', *LOOKS)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(limited(world, reports=1), one)
        assert (report.outcome, report.settled) == ("done", True)
        assert sorted(row.state for row in report.findings) == ["confirmed", "posted"]
        assert (await world.journal.spent_today())[""]["reports"] == 1
        assert len(await own_entries(world)) == 1


async def test_a_report_that_another_run_s_charge_overtook_leaves_the_outbox(
    house: House, tmp_path: Path
) -> None:
    one = persona(tmp_path, 'tools = ["qa_fetch"]\nbudget = { calls = 60 }', LOOKS[0])
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:

        class Overtaken:
            """Somebody takes the day's last report between the look and the charge."""

            async def post(self, text: str, *, run: str, charge: Charge) -> PostedEntry:
                await world.journal.trigger(
                    NewRun(
                        run_id="other",
                        persona="qa-o",
                        key="o",
                        platform="devnet",
                        trigger="t",
                        rung="",
                        budget={},
                    )
                )
                await world.journal.spend("other", "reports", 1, 8)
                return await world.chain.log.post(text, run=run, charge=charge)

            def __getattr__(self, name: str) -> Any:
                return getattr(world.chain.log, name)

        side = replace(world.chain, log=cast(FeedbackPort, Overtaken()))
        overtaken = replace(limited(world, reports=1), chain=side)
        report = await fire(overtaken, one)
        assert (report.outcome, report.settled) == ("done", True)
        assert [row.state for row in report.findings] == ["confirmed"]
        assert (await world.journal.spent_today())[""]["reports"] == 1
        assert await own_entries(world) == []
