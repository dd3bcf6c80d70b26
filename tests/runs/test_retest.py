"""Open items are run again: seen, clean after three answers, or not reached, which is never "fixed"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.session import RunOver
from fleet.findings.recurrence import Recurrence, key_of, read_recurrence
from fleet.personas.model import PolicySection
from fleet.runs.proof.retest import retest
from fleet.store.rows import FindingRow, ItemRow, NewRun
from tests.runs.table import RUN, Table, look, persona, seated, well
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio

FP = "0123456789ab"


async def filed(table: Table, *, fingerprint: str = FP, persona: str = "qa-paper", **changes: Any) -> None:
    """An item that an earlier run of the same persona has on the log."""
    await table.world.journal.trigger(
        NewRun(
            run_id="older", persona="qa-paper", key="older", platform="paper", trigger="", rung="", budget={}
        )
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
        fingerprint=fingerprint,
        state="posted",
        probe="a",
        persona=persona,
        surface="ux",
        severity="medium",
        data=data | changes,
    )
    await table.world.journal.add_finding(row)


async def figures(table: Table) -> Recurrence:
    return read_recurrence(await table.world.journal.get(key_of(table.world.platform.name, FP)))


@pytest.mark.parametrize(
    ("unjudged", "verdict"), [(["links"], "unreached"), (["headers"], "clean"), ([], "clean")]
)
async def test_what_decides_and_could_not_be_had_is_not_gone(
    tmp_path: Path, unjudged: list[str], verdict: str
) -> None:
    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return await well(tool, args) | {"unjudged": unjudged}

    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        await filed(table, fields=["links"])
        assert await retest(table.drive.runner) == {FP: verdict}


@pytest.mark.parametrize(
    ("answers", "verdict", "calls"),
    [
        ([{}, {}, {}, {}], "clean", 4),  # the fourth is the control
        ([{}, {}, {}, {"status": 503}], "unreached", 4),
        ([{}, {}, {}, {"ok": False, "error_class": "timeout", "error": "late"}], "unreached", 4),
        ([{}, {"status": 429}], "unreached", 2),
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
        assert await retest(table.drive.runner) == {FP: verdict}
        assert len(table.jail.calls) == calls
        after = await figures(table)
        assert bool(after.clean_at) == (verdict == "clean")
        assert after.runs == (verdict == "shown")
        assert after.looked
        assert bool(after.why) == (verdict == "unreached")


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([{"status": 403}] * 4, "unreached"),
        ([*[{"status": 403}] * 3, {"ok": False, "error_class": "timeout", "error": "late"}], "unreached"),
        (
            [*[{"status": 403}] * 3, {"status": 404}, {}],
            "clean",
        ),  # the page is forbidden now, the site is open
    ],
)
async def test_an_item_of_a_platform_that_locks_the_fleet_out_is_not_fixed(
    tmp_path: Path, answers: list[dict[str, Any]], verdict: str
) -> None:
    left = list(answers)

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return await well(tool, args) | left.pop(0)

    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        await filed(table, probe=look("a", "true").model_dump(mode="json"))
        assert await retest(table.drive.runner) == {FP: verdict}
        assert left == []
        assert bool((await figures(table)).clean_at) == (verdict == "clean")


async def test_a_clean_item_another_personas_and_another_platforms_are_left_alone(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY) as table:
        await filed(table, platform="elsewhere")
        assert await retest(table.drive.runner) == {}
    async with seated(tmp_path / "b", persona(), hand=ANY) as table:
        await filed(table)
        clean = Recurrence().clean("2026-11-22T12:00:00Z", "r")
        await table.world.journal.put(key_of(table.world.platform.name, FP), clean.model_dump_json())
        assert await retest(table.drive.runner) == {}
        assert table.jail.calls == []


async def test_nothing_is_run_again_that_the_budget_does_not_cover(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(calls=10), hand=ANY) as table:
        await filed(table)
        assert await retest(table.drive.runner) == {}
        assert table.jail.calls == []


async def test_an_item_of_several_personas_is_left_to_the_persona_that_runs_all(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY) as table:
        await filed(table)
        await filed(table, fingerprint="f" * 12, persona="qa-other")
        item = ItemRow(
            fingerprint=FP,
            state="confirmed",
            severity="medium",
            surface="ux",
            title="t",
            persona="qa-paper",
            repro="",
            names=(FP, "f" * 12),
            trusted=True,
        )
        await table.world.journal.put_items("paper", [item])
        assert await retest(table.drive.runner) == {}


async def test_what_a_run_proves_is_counted_however_the_run_ends(tmp_path: Path) -> None:
    """Also for a driver that works without a plan, and a run that a fence ends after its proofs."""

    async def broken(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return await well(tool, args) | {"status": 500}

    limited = PolicySection(max_turns_per_run=1)
    async with seated(tmp_path, persona(look("a"), look("b"), policy=limited), answer=broken) as table:
        with pytest.raises(RunOver, match="iteration_budget"):
            await table.drive()
        (row,) = await table.world.journal.findings(RUN)
        known = await table.world.journal.get(key_of("paper", row.fingerprint))
        assert (row.state, read_recurrence(known).runs) == ("confirmed", 1)
