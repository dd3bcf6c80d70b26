"""Who may drive a run, and in which order its records stand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleet.events.trajectory import read
from fleet.runs.driver_choice import DRIVERS, PLAYBOOK, DriverChoice, drivers
from tests.runs.table import look, persona, seated

pytestmark = pytest.mark.anyio


async def test_a_model_may_be_asked_for_where_one_is_configured(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        assert drivers(table.world.model) == DRIVERS
        wired = replace(table.world, model=lambda _: DriverChoice(name="model", drive=PLAYBOOK.drive))
        assert drivers(wired.model) == (*DRIVERS, "model")


async def test_the_records_of_a_run_are_in_its_file_in_their_order(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        await table.drive()
        kinds = [event.type for event in read(table.folder / "trajectory.jsonl")]
    asked = ["turn.started", "decision.made", "tool.requested", "tool.responded", "turn"]
    assert kinds == ["header", *["phase.changed"] * 3, *asked]
