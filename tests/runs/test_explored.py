"""What an explorer asks: answered in order, judged whole, minimised, proven, and remembered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from fleet.drivers.desk import Question
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.findings.proof import MOST_LOOKS
from fleet.personas.model import Step
from fleet.runs.desk.coverage import coverage
from fleet.runs.desk.desk import KEPT, PROOF_SHARE
from fleet.runs.proof.rerun import WRITES
from tests.runs.table import PLATFORM, RUN, persona, seated, well
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
    question = Question((fetch("a"), fetch("bad", canary="qaword"), fetch("b")))
    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        async with table.desk.turn() as turn:
            one, two, three = (await turn.pose([question]))[0] or ()
        assert [one["status"], two["status"], three["status"]] == [200, 500, 200]
        await table.drive.runner.prove_raised()
        (row,) = await table.world.journal.findings(RUN)
        assert (row.state, row.confirmed, row.tries) == ("confirmed", 3, 3)
        assert row.repro == 'qa_fetch(url="{site}/bad")'
        assert row.data["minimised_from"] == 'qa_fetch(canary="qaword", url="{site}/bad")'
        assert "claim" not in row.data
        (learned,) = table.world.learned.all()
        assert (learned.fingerprint, learned.oracle, learned.persona) == (
            row.fingerprint,
            "server-error",
            "qa-paper",
        )
        assert learned.probe.steps == (fetch("bad"),)


async def test_a_title_has_the_url_that_was_cut(tmp_path: Path) -> None:
    async def sorts(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return await well(tool, args) | ({"status": 500} if "_sort=x" in args["url"] else {})

    question = Question((fetch("dogs?_size=max&_sort=x&page=2"),))
    async with seated(tmp_path, persona(), hand=ANY, answer=sorts) as table:
        async with table.desk.turn() as turn:
            await turn.pose([question])
        await table.drive.runner.prove_raised()
        (row,) = await table.world.journal.findings(RUN)
        (learned,) = table.world.learned.all()
    assert (
        row.title
        == learned.title
        == learned.probe.finding
        == "Request causes a server error: GET /dogs?_sort=x answers 500"
    )
    assert row.repro == 'qa_fetch(url="{site}/dogs?_sort=x")'
    assert f"\n{row.title}\n" in row.envelope
    assert row.data["minimised_from"] == 'qa_fetch(url="{site}/dogs?_size=max&_sort=x&page=2")'


async def test_what_the_title_says_is_not_cut_away(tmp_path: Path) -> None:
    question = Question((fetch("a"), fetch("bad", origin="http://x", canary="qaword")))
    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        async with table.desk.turn() as turn:
            await turn.pose([question])
        await table.drive.runner.prove_raised()
        (row,) = await table.world.journal.findings(RUN)
    assert row.title == "Request causes a server error: GET /bad from the origin http://x answers 500"
    assert row.repro == 'qa_fetch(origin="http://x", url="{site}/bad")'


async def test_a_question_ends_at_its_first_call_that_could_not_look(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        async with table.desk.turn() as turn:
            asked = [Question((fetch("a"), fetch("gone"), fetch("bad"))), Question((fetch("b"),))]
            first, second = [one or () for one in await turn.pose(asked)]
        assert [one["ok"] for one in first] == [True, False]
        assert [one["ok"] for one in second] == [True]
        assert await table.world.journal.findings(RUN) == []


async def test_the_room_of_an_explorer_keeps_back_what_proofs_need(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(calls=100, writes=50), hand=ANY, answer=answer) as table:
        share = int(100 * PROOF_SHARE)
        assert (await table.desk.room()).calls == 100 - KEPT - share
        assert (await table.desk.room()).acts == (50 - int(50 * PROOF_SHARE)) // WRITES
        async with table.desk.turn() as turn:
            await turn.pose(
                [Question((fetch(f"{at}/bad"),)) for at in ("ant", "bee", "cow", "dog", "elk", "fox", "gnu")]
            )
        assert (await table.desk.room()).calls == 100 - 7 - KEPT - max(share, 7 * MOST_LOOKS)


async def test_the_end_of_the_room_says_what_ended_it_and_what_to_raise(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(calls=20, writes=50), hand=ANY, answer=answer) as table:
        room = await table.desk.room()
    said = (
        "the budget of 20 calls is spent, but for the 20 kept for proofs (budget.calls in the persona file)"
    )
    assert (room.calls, room.why) == (0, said)


async def test_there_is_no_room_once_everything_is_paused(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=answer) as table:
        (table.world.state / "STOP").touch()
        assert (await table.desk.room()).calls == 0


class Endless:
    """Shows a defect with its first question, then asks what is never answered."""

    def __init__(self, ground: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        self.asked = 0

    def ask(self, most: int) -> Sequence[Question]:
        self.asked += 1
        return [Question((fetch("bad" if self.asked == 1 else "never"),))]

    def learn(self, question: Question, results: Results) -> None:
        pass

    def state(self) -> Mapping[str, Any]:
        return {}


async def test_an_explorer_that_does_not_end_leaves_the_time_for_proofs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        if args["url"].endswith("never"):
            await anyio.sleep(3_600)
        return await answer(tool, args)

    one = persona()
    one = replace(one, persona=one.persona.model_copy(update={"explore": ("web",)}))
    monkeypatch.setattr("fleet.runs.drive.chosen", lambda names, granted: {"endless": Endless})
    async with seated(tmp_path, one, answer=late) as table:
        table.drive.budget = replace(table.drive.budget, wall_s=4.0)
        with anyio.fail_after(60):
            assert await table.drive() == "explorers stopped by the deadline"
        (row,) = await table.world.journal.findings(RUN)
        assert (row.state, row.confirmed, row.tries) == ("confirmed", 3, 3)


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (
            range(3),
            "no account could be made, because the sign-up answers 422: name taken for ever",
        ),
        (
            {1},
            "no account could be made for 1 of 3 questions,"
            " because the sign-up answers 422: name taken for ever",
        ),
        ((), ""),
    ],
)
async def test_accounts_that_are_refused_stand_in_the_coverage(
    tmp_path: Path, refused: Collection[int], said: str
) -> None:
    count = iter(range(9))

    async def join(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        why = "the sign-up answers 422: name taken \x1b[31mfor ever"
        failed = {"ok": False, "error_class": "http", "error": why}
        answers = [{"status": 200}, {"status": 404}, {"status": 200}, {"status": 0}]
        return failed if next(count) in refused else {"ok": True, "answers": answers}

    asked = [[who, "GET", path, {}] for who, path in (("one", "/a?b=c"), ("other", "/a"), ("one", "/b"))]
    row = [*asked, ["other", "GET", "/b", {}]]
    steps = (Step(tool="qa_account", args={"url": "{proxy}/join", "steps": row}),)
    platform = PLATFORM.model_copy(
        update={"web": PLATFORM.web.model_copy(update={"act_paths": ("{proxy}/join",)})}
    )
    one = persona(tools=("qa_account", "qa_fetch"))
    async with seated(tmp_path, one, hand=ANY, answer=join, platform=platform) as table:
        async with table.desk.turn() as turn:
            await turn.pose([Question(steps)] * 3)
        found = coverage(table.folder, RUN, "done")
        parts = found["unexplored"]
        skipped = [event.reason for event in table.said("probe.skipped")]
    assert [one["probe"] for one in parts] == (["accounts of {proxy}/join"] if refused else [])
    assert "".join(one["reason"] for one in parts) == said
    assert len(skipped) == len(refused)
    seen = [{"part": "/a", "accounts": 2}, {"part": "/b", "accounts": 1}]
    assert found["as_whom"] == (seen if len(refused) < 3 else [])
