"""A run that acts unlike the earlier ones of its persona is a question to a person; nothing waits for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet.config import EVENTS
from fleet.gate.stop import stopped
from fleet.runs.call.questions import answer, no_answer, question_rows, questions
from fleet.runs.conduct import CONDUCT, FEWEST, KEPT, LEAST, judge_conduct, unusual
from fleet.service.notify.news import of_questions
from fleet.service.notify.state import NoticeState
from tests.runs.table import RUN, persona, seated

pytestmark = pytest.mark.anyio
USUAL = {"calls": 100.0, "acts": 0.1, "refused": 0.0, "unreached": 0.0, "requests": 2.0, "hosts": 2.0}
COUNTS = {"calls": 100, "acts": 10, "refused": 0, "unreached": 0, "requests": 200, "hosts": 2}


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({}, []),
        ({"acts": 0.3}, []),
        ({"acts": 0.31}, ["acts"]),
        ({"calls": 300.0, "requests": 1.0}, ["calls"]),
        ({"hosts": 9.0, "refused": 0.5}, ["refused", "hosts"]),
    ],
)
def test_what_is_unusual_is_measured_by_what_was_usual(change: dict[str, float], names: list[str]) -> None:
    earlier = [USUAL | {"calls": 100.0 + 20 * n} for n in (-2, -1, 0, 1, 2)]
    assert [one.partition(" ")[0] for one in unusual(USUAL | change, earlier)] == names
    assert unusual(USUAL | change, earlier[1:]) == []
    assert USUAL.keys() == LEAST.keys()


async def test_a_person_looks_at_a_run_that_acted_unlike_the_earlier_ones(tmp_path: Path) -> None:
    async with seated(tmp_path, persona()) as table:
        world = table.world
        for _ in range(KEPT + 3):
            await judge_conduct(world, RUN, "qa-x", COUNTS, well=True)
        await judge_conduct(world, RUN, "qa-x", COUNTS | {"acts": 90}, well=False)
        await judge_conduct(world, RUN, "qa-x", COUNTS | {"calls": 9, "acts": 9}, well=True)
        kept = json.loads((await world.journal.facts(CONDUCT))[f"{CONDUCT}paper:qa-x"])
        assert len(kept) == KEPT > FEWEST
        assert {one["measured"]["acts"] for one in kept} == {0.1}
        [one] = await questions(world.journal)
        assert (one.trigger, one.level, one.run) == ("unusual", "low", RUN)
        assert one.what.startswith("qa-x acted unlike its last 20 runs: acts 0.9, usually 0.1")
        assert no_answer(one.trigger) == "then it stands as it is"
        [told] = of_questions(NoticeState(), [one], "", one.asked).waiting
        assert (told.critical, "is to be looked at by" in told.text, told.event in EVENTS) == (
            False,
            True,
            True,
        )
        args = (world.journal, world.state, world.platform.escalation, world.clock, one.ident)
        made = await answer(*args, approve=True, who="ada@host", why="a new probe")
        assert question_rows([made], world.clock.now())[0]["state"] == "approved"
        assert "a new probe" in table.decisions()
        assert stopped(world.state) is None
