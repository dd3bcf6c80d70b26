"""Workers of a model driver: a conversation for each probe, as many at a time as are configured."""

from __future__ import annotations

import json

import anyio
import pytest

from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded
from tests.doubles.drivers import MemoryDesk
from tests.doubles.model import Answer, Held, ModelPrompt, Say, Script, ScriptedCall, Silence
from tests.drivers.modelled import DONE, driven

pytestmark = pytest.mark.anyio

PROBES = ("first", "second", "third", "fourth", "fifth")


def at_hand(asked: ModelPrompt) -> list[str]:
    """The probes that a conversation was told of."""
    told = json.dumps(asked.messages[1])
    return [probe for probe in PROBES if probe in told]


def working(asked: ModelPrompt) -> Say:
    """Looks at its probe, and finishes when it has the result."""
    (probe,) = at_hand(asked)
    return DONE if asked.answers() else Say(text=probe, calls=[ScriptedCall("run_probe", {"probe": probe})])


async def drive(desk: MemoryDesk, script: Script, workers: int) -> tuple[str, list[ModelPrompt]]:
    async with driven(script, workers=workers) as (driver, model):
        with anyio.fail_after(60):
            return await driver(desk), model.asked


@pytest.mark.parametrize("workers", [1, 3, 8])
async def test_each_probe_is_asked_once_in_a_conversation_of_its_own(workers: int) -> None:
    desk = MemoryDesk(probes=PROBES)
    assert (await drive(desk, working, workers))[0] == "the model finished"
    asked = [args["probe"] for _, tool, args in desk.asked if tool == "run_probe" and isinstance(args, dict)]
    assert sorted(asked) == sorted(PROBES)
    assert len(desk.turns) == 2 * len(PROBES) == len(desk.settled) == len(desk.reserved)
    assert sum(desk.reserved) == sum(
        (u.input_tokens or 0) + (u.output_tokens or 0) for u in desk.settled if u
    )
    starts = [event.index for event in desk.shown if event.type == "message.started"]
    assert starts == list(range(len(starts)))  # an answer is shown whole, and none twice


async def test_three_think_at_a_time_and_a_fourth_waits() -> None:
    """The endpoint answers nobody until three have asked: two workers would wait for ever."""
    three, asked = anyio.Event(), list[list[str]]()

    def script(one: ModelPrompt) -> Answer:
        asked.append(at_hand(one))
        if len(asked) == 3:
            three.set()
        return Held(three, working(one))

    desk = MemoryDesk(probes=PROBES)
    await drive(desk, script, 3)
    assert sorted(asked[:3]) == sorted([probe] for probe in PROBES[:3])
    assert not desk.next_probe()


async def test_what_ends_the_run_ends_every_worker_and_each_settles_what_it_reserved() -> None:
    def script(asked: ModelPrompt) -> Answer:
        if at_hand(asked) == ["second"]:
            desk.stop = "a STOP file"
        return Silence(30.0) if at_hand(asked) == ["third"] else working(asked)

    desk = MemoryDesk(probes=PROBES)
    with pytest.raises(RunOver) as over:
        await drive(desk, script, 3)
    assert (over.value.outcome, over.value.detail) == ("stopped", "a STOP file")
    assert len(desk.settled) == len(desk.reserved)


async def test_workers_share_one_budget() -> None:
    desk = MemoryDesk(probes=PROBES, tokens=8_000)
    with pytest.raises(BudgetExceeded):
        await drive(desk, working, 5)
    assert 0 < len(desk.settled) == len(desk.reserved)


async def test_a_silent_answer_is_a_turn_that_timed_out_and_the_others_go_on() -> None:
    lost = 0

    def script(asked: ModelPrompt) -> Answer:
        nonlocal lost
        if at_hand(asked) == ["second"] and not lost:
            lost += 1
            return Silence(60.0)
        return working(asked)

    desk = MemoryDesk(probes=PROBES, turn_timeout_s=3.0)
    assert (await drive(desk, script, 2))[0] == "the model finished"
    assert {turn.failure for turn in desk.turns} == {"", "turn_timeout"}
    assert not desk.next_probe()


async def test_who_stops_with_its_probe_open_goes_on_and_is_told_of_no_other() -> None:
    def script(asked: ModelPrompt) -> Answer:
        return Say(text="I think I am done.") if len(asked.messages) == 2 else working(asked)

    desk = MemoryDesk(probes=PROBES[:2])
    _, asked = await drive(desk, script, 2)
    assert desk.continuations == 2
    assert all(len(at_hand(one)) == 1 for one in asked)
