"""What an explorer asks: answered in order, judged whole, minimised, proven, and remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.desk import Question
from fleet.personas.model import Step
from fleet.runs.desk.desk import KEPT, PROOF_CALLS
from tests.runs.table import RUN, persona, seated, well
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio


def fetch(page: str, **more: Any) -> Step:
    return Step(tool="qa_fetch", args={"url": "{site}/" + page, **more})


async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    page = str(args["url"]).rpartition("/")[2]
    said: dict[str, Any] = {"status": 500} if page == "bad" else {}
    if page == "gone":
        said = {"ok": False, "error_class": "unreachable", "error": "gone"}
    return await well(tool, args) | said


async def test_a_question_is_judged_minimised_proven_and_learned(tmp_path: Path) -> None:
    question = Question((fetch("a"), fetch("bad", origin="http://x"), fetch("b")))
    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        async with table.desk.turn() as turn:
            ((one, two, three),) = await turn.pose([question])
        assert [one["status"], two["status"], three["status"]] == [200, 500, 200]
        await table.drive.exercise.prove_raised()
        (row,) = await table.world.journal.findings(RUN)
        assert (row.state, row.confirmed, row.tries) == ("confirmed", 3, 3)
        assert row.repro == 'qa_fetch(url="{site}/bad")'
        assert row.data["minimised_from"] == 'qa_fetch(origin="http://x", url="{site}/bad")'
        assert "claim" not in row.data
        (learned,) = table.world.learned.all()
        assert (learned.fingerprint, learned.oracle, learned.persona) == (
            row.fingerprint,
            "server-error",
            "qa-paper",
        )
        assert learned.probe.steps == (fetch("bad"),)


async def test_a_question_ends_at_its_first_call_that_could_not_look(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        async with table.desk.turn() as turn:
            first, second = await turn.pose(
                [Question((fetch("a"), fetch("gone"), fetch("bad"))), Question((fetch("b"),))]
            )
        assert [one["ok"] for one in first] == [True, False]
        assert [one["ok"] for one in second] == [True]
        assert await table.world.journal.findings(RUN) == []


async def test_the_room_of_an_explorer_keeps_back_what_proofs_need(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(calls=100), hand=ANY, answer=answer) as table:
        assert (await table.desk.room()).calls == 100 - KEPT
        async with table.desk.turn() as turn:
            await turn.pose([Question((fetch("bad"),))])
        assert (await table.desk.room()).calls == 100 - KEPT - 1 - PROOF_CALLS


async def test_there_is_no_room_once_everything_is_paused(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        (table.world.state / "STOP").touch()
        assert (await table.desk.room()).calls == 0
