"""What a run keeps of its measurements: samples of healthy answers, charts of findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.oracles.measures import latency_of
from fleet.oracles.statistics import charts
from fleet.personas.model import Step
from tests.runs.table import Table, look, persona, seated

pytestmark = pytest.mark.anyio
pytest.importorskip("scipy", reason="the extra `stats` is not installed")
FAST = [5 + at * 0.618 % 1 for at in range(50)]
MIXED = [one + 400 * (at % 5 == 4) for at, one in enumerate(FAST)]
ARGS = {"url": "{site}/a", "control": "{site}/b", "rate": 10.0, "repeat": 50}
STEPS = (Step(tool="qa_fetch", args=ARGS),)


def result(own: list[float], **more: Any) -> dict[str, Any]:
    return {"ok": True, "status": 200, "samples_ms": own, "control_ms": FAST} | more


async def kept(table: Table) -> dict[str, list[int]]:
    past = await table.drive.runner.world.journal.past("paper")
    return {name: [len(row.own) for row in rows] for name, rows in past.items()}


async def test_a_healthy_measurement_of_an_explorer_is_kept(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        answer = result(FAST, headers={"x-version": "7.1"})
        await table.drive.runner.look_at_answers(STEPS, [answer], trusted=True)
        assert await kept(table) == {latency_of(ARGS): [40]}
        (row,) = (await table.drive.runner.world.journal.past("paper"))[latency_of(ARGS)]
        assert (row.build, len(row.control)) == ("7.1", 40)
        assert not (table.folder / "plots").exists()


async def test_a_measurement_beside_a_restless_control_is_not_kept(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        answer = result(FAST, control_ms=[one + 100 * (at % 7 == 0) for at, one in enumerate(FAST)])
        await table.drive.runner.look_at_answers(STEPS, [answer], trusted=True)
        assert await kept(table) == {}


async def test_what_a_finding_rests_on_is_drawn_and_not_kept(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        await table.drive.runner.look_at_answers(STEPS, [result(MIXED)], trusted=True)
        (row,) = await table.drive.runner.world.journal.findings()
        assert row.data["oracle"] == "slow-share"
        assert [path.name for path in (table.folder / "plots").iterdir()] == [f"{row.fingerprint}.svg"]
        assert await kept(table) == {}


async def test_a_chart_that_cannot_be_drawn_costs_only_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bytes:
        raise RuntimeError("no ink")

    monkeypatch.setattr(charts, "distribution", fails)
    async with seated(tmp_path, persona(look("a"))) as table:
        await table.drive.runner.look_at_answers(STEPS, [result(MIXED)], trusted=True)
        assert len(await table.drive.runner.world.journal.findings()) == 1
        assert list((table.folder / "plots").iterdir()) == []


async def test_what_an_outside_driver_measured_is_not_kept(tmp_path: Path) -> None:
    """It chose the pages and may have chosen the answers of its own name."""
    async with seated(tmp_path, persona(look("a"))) as table:
        await table.drive.runner.look_at_answers(STEPS, [result(FAST)])
        assert await kept(table) == {}


async def test_a_healthy_probe_keeps_what_it_measures(tmp_path: Path) -> None:
    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return result(FAST)

    async with seated(tmp_path, persona(look("a")), answer=answer) as table:
        await table.drive.runner.look(look("a", url="{site}/a", control="{site}/b", rate=10.0, repeat=50))
        assert list((await kept(table)).values()) == [[40]]
