"""Open items are run again: seen, clean after three answers, or not reached, which is never "fixed"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.findings.recurrence import Recurrence, key_of, read_recurrence
from fleet.runs.proof.retest import retest
from fleet.store.rows import FindingRow
from tests.runs.table import Table, look, persona, seated, well
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio

FP = "0123456789ab"


async def filed(table: Table, **changes: Any) -> None:
    """An item that an earlier run of the same persona has on the log."""
    await table.world.journal.trigger(
        "older", persona="qa-paper", key="older", platform="paper", trigger="", rung="", budget={}
    )
    probe = look("a", "result.status == 200")
    data = {
        "probe": probe.model_dump(mode="json"),
        "oracle": "server-error",
        "signature": "server-error {site}/a 500",
        "platform": table.world.platform.name,
    }
    row = FindingRow(
        run_id="older",
        fingerprint=FP,
        state="posted",
        probe="a",
        persona="qa-paper",
        surface="ux",
        severity="medium",
        data=data | changes,
    )
    await table.world.journal.add_finding(row)


async def figures(table: Table) -> Recurrence:
    return read_recurrence(await table.world.journal.get(key_of(table.world.platform.name, FP)))


@pytest.mark.parametrize(
    ("answers", "verdict", "calls"),
    [
        ([{}, {}, {}], "clean", 3),
        ([{}, {"status": 500}], "shown", 2),
        ([{"status": 500}], "shown", 1),
        ([{}, {"ok": False, "error_class": "unreachable", "error": "gone"}], "unreached", 2),
        ([{}, {}, {"status": 502}], "unreached", 3),
    ],
)
async def test_the_verdict(tmp_path: Path, answers: list[dict[str, Any]], verdict: str, calls: int) -> None:
    left = list(answers)

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return await well(tool, args) | left.pop(0)

    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        await filed(table)
        assert await retest(table.drive.exercise) == {FP: verdict}
        assert len(table.jail.calls) == calls
        after = await figures(table)
        assert bool(after.clean_at) == (verdict == "clean")
        assert after.runs == (verdict == "shown")
        assert after.looked


async def test_a_clean_item_another_personas_and_another_platforms_are_left_alone(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY) as table:
        await filed(table, platform="elsewhere")
        assert await retest(table.drive.exercise) == {}
    async with seated(tmp_path / "b", persona(), hand=ANY) as table:
        await filed(table)
        clean = Recurrence().clean("2026-11-22T12:00:00Z", "r")
        await table.world.journal.put(key_of(table.world.platform.name, FP), clean.model_dump_json())
        assert await retest(table.drive.exercise) == {}
        assert table.jail.calls == []


async def test_nothing_is_run_again_that_the_budget_does_not_cover(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(calls=10), hand=ANY) as table:
        await filed(table)
        assert await retest(table.drive.exercise) == {}
        assert table.jail.calls == []
