"""What every desk must do, whichever driver works at it: the one in memory and a run's alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from fleet.drivers.desk import FINISH, MAX_REPLY, REPORT_FINDING, RUN_PROBE, Desk, Reply
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded
from fleet.events.model import MessageSaid, TurnUsage
from tests.drivers.stands import GOOD, MAKERS, TOOL, MakeStand, Stand, healthy

pytestmark = pytest.mark.anyio


@pytest.fixture(params=list(MAKERS.values()), ids=list(MAKERS))
def make(request: pytest.FixtureRequest) -> MakeStand:
    stand: MakeStand = request.param
    return stand


async def ask(desk: Desk, tool: str, args: Mapping[str, Any] | str, call_id: str = "c1") -> Reply:
    async with desk.turn() as turn:
        return await turn.ask(call_id, tool, args)


async def test_its_own_tools_and_the_granted_ones_are_on_offer_with_a_schema(make: MakeStand) -> None:
    async with make() as stand:
        offers = stand.desk.offers()
        names = [one.name for one in offers]
        assert len(names) == len(set(names))
        assert {RUN_PROBE, REPORT_FINDING, FINISH, TOOL} <= set(names)
        assert all(one.parameters["type"] == "object" and one.group for one in offers)


async def test_the_plan_is_told_but_not_by_the_system(make: MakeStand) -> None:
    async with make() as stand:
        brief = stand.desk.brief()
        assert "first" in brief.plan
        assert "second" in brief.plan
        assert brief.plan not in brief.system
        assert stand.desk.next_probe() == "first"


async def test_a_call_is_answered_under_its_own_id(make: MakeStand) -> None:
    async with make() as stand:
        reply = await ask(stand.desk, TOOL, GOOD, "call-7")
        assert (reply.call_id, reply.tool, reply.is_error) == ("call-7", TOOL, False)
        assert stand.turns()[-1].proposed == ("call-7",)


@pytest.mark.parametrize(
    ("tool", "args", "pointer"),
    [
        ("qa_nothing", GOOD, ""),
        ("rm -rf /", {}, ""),
        (TOOL, '{"url": "http', ""),
        (TOOL, "[1]", ""),
        (TOOL, {"url": 7}, "/url"),
        (TOOL, {**GOOD, "also": "x"}, "/also"),
        (TOOL, {}, "/url"),
        (RUN_PROBE, {"probe": "none-of-ours"}, "/probe"),
    ],
)
async def test_a_drivers_mistake_is_an_answer_that_says_where(
    make: MakeStand, tool: str, args: Mapping[str, Any] | str, pointer: str
) -> None:
    async with make() as stand:
        reply = await ask(stand.desk, tool, args)
        assert reply.is_error
        assert reply.content["error"]
        assert reply.content.get("pointer", "") == pointer
        assert not (await ask(stand.desk, TOOL, GOOD)).is_error


async def test_calls_of_one_turn_are_done_one_after_the_other(make: MakeStand) -> None:
    running, most = 0, 0

    async def answer() -> dict[str, Any]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.01)
        running -= 1
        return await healthy()

    replies: dict[str, Reply] = {}
    async with make(answer=answer) as stand, stand.desk.turn() as turn:

        async def one(name: str) -> None:
            replies[name] = await turn.ask(name, TOOL, {"url": f"http://site/{name}"})

        async with anyio.create_task_group() as tasks:
            for name in "abcd":
                tasks.start_soon(one, name)
    assert most == 1
    assert {name: reply.call_id for name, reply in replies.items()} == {name: name for name in "abcd"}
    assert sorted(stand.turns()[-1].proposed) == list("abcd")


async def test_a_large_answer_is_cut(make: MakeStand) -> None:
    async def answer() -> dict[str, Any]:
        return {**await healthy(), "text": "\\\n\0" * 50_000}

    async with make(answer=answer) as stand:
        reply = await ask(stand.desk, TOOL, GOOD)
        assert len(json.dumps(reply.content).encode()) <= MAX_REPLY


async def test_every_turn_leaves_one_record_however_it_ends(make: MakeStand) -> None:
    async with make() as stand:
        async with stand.desk.turn():
            pass
        with pytest.raises(ZeroDivisionError):
            async with stand.desk.turn():
                raise ZeroDivisionError
        async with stand.desk.turn() as turn:
            turn.failed("refusal", "it would not")
        assert [one.failure for one in stand.turns()][-1] == "refusal"
        first = stand.turns()[0].index
        assert [one.index for one in stand.turns()] == [first, first + 1, first + 2]


async def test_a_failure_without_a_name_is_a_mistake_of_the_driver(make: MakeStand) -> None:
    async with make() as stand, stand.desk.turn() as turn:
        with pytest.raises(ValueError, match="tired"):
            turn.failed("tired")


async def test_usage_is_summed_and_what_is_not_known_stays_so(make: MakeStand) -> None:
    async with make() as stand:
        async with stand.desk.turn() as turn:
            turn.used(TurnUsage(model="m", input_tokens=3, output_tokens=1, model_calls=1))
            turn.used(TurnUsage(model="m", input_tokens=4, model_calls=1))
        used = stand.turns()[-1].usage
        assert used is not None
        assert (used.input_tokens, used.output_tokens, used.model_calls) == (7, None, 2)


async def test_three_failed_turns_in_a_row_are_stuck(make: MakeStand) -> None:
    async with make() as stand:
        for _ in range(3):
            async with stand.desk.turn() as turn:
                turn.failed("provider_error")
        with pytest.raises(RunOver) as over:
            async with stand.desk.turn():
                pass
        assert over.value.outcome == "agent_stuck"
        assert len(stand.turns()) == 3


async def test_a_turn_that_worked_starts_the_count_again(make: MakeStand) -> None:
    async with make() as stand:
        for failure in ("provider_error", "refusal", "", "provider_error", "refusal", ""):
            async with stand.desk.turn() as turn:
                await turn.ask("c", TOOL, GOOD | {"url": f"http://site/{failure}"})
                if failure:
                    turn.failed(failure)
        assert len(stand.turns()) == 6


async def test_a_turn_has_a_deadline_and_five_lost_ones_end_the_run(make: MakeStand) -> None:
    async with make(turn_timeout_s=0.05) as stand:
        for _ in range(5):
            with pytest.raises(TimeoutError):
                async with stand.desk.turn():
                    await anyio.sleep(5)
        assert [one.failure for one in stand.turns()] == ["turn_timeout"] * 5
        with pytest.raises(RunOver) as over:
            async with stand.desk.turn():
                pass
        assert (over.value.outcome, over.value.detail) == ("budget_exhausted", "inference_latency")


async def test_after_its_end_a_turn_takes_nothing_any_more(make: MakeStand) -> None:
    async with make() as stand:
        async with stand.desk.turn() as turn:
            kept = turn
        before = list(stand.turns())
        kept.show(MessageSaid(text="late"))
        kept.used(TurnUsage(input_tokens=1))
        with pytest.raises((RuntimeError, RunOver)):
            await kept.ask("late", TOOL, GOOD)
        assert list(stand.turns()) == before


async def test_the_number_of_turns_is_bounded(make: MakeStand) -> None:
    async with make(max_turns=2) as stand:
        await ask(stand.desk, TOOL, GOOD)
        await ask(stand.desk, TOOL, GOOD | {"url": "http://site/y"})
        with pytest.raises(RunOver):
            await ask(stand.desk, TOOL, GOOD)
        with pytest.raises(RunOver):  # and stays so
            await ask(stand.desk, TOOL, GOOD)
        assert len(stand.turns()) == 2


async def test_a_person_stops_the_run_before_the_next_call(make: MakeStand) -> None:
    async with make() as stand:
        with pytest.raises(RunOver) as over:
            await _stopped_between_two_calls(stand)
        assert over.value.outcome == "stopped"
        with pytest.raises(RunOver):
            async with stand.desk.turn():
                pass


async def _stopped_between_two_calls(stand: Stand) -> None:
    async with stand.desk.turn() as turn:
        await turn.ask("one", TOOL, GOOD)
        stand.stop()
        await turn.ask("two", TOOL, GOOD)


async def test_who_stops_early_is_told_to_go_on_so_many_times(make: MakeStand) -> None:
    async with make(max_continuations=3) as stand:
        assert all([await stand.desk.more() for _ in range(3)])
        with pytest.raises(RunOver) as over:
            await stand.desk.more()
        assert over.value.outcome == "max_continuations"


async def test_a_plan_that_is_done_lets_the_driver_go(make: MakeStand) -> None:
    async with make() as stand:
        for probe in ("first", "second"):
            assert await stand.desk.more()
            reply = await ask(stand.desk, RUN_PROBE, {"probe": probe})
            assert not reply.is_error, reply
        assert stand.desk.next_probe() == ""
        assert await stand.desk.more() == ""


async def test_a_group_that_fails_three_times_in_a_row_is_withdrawn(make: MakeStand) -> None:
    answers = [False, False, True, False, False, False]

    async def answer() -> dict[str, Any]:
        if answers and answers.pop(0):  # afterwards a host's first page fails as well: its control
            return await healthy()
        return {**await healthy(), "ok": False, "error": "broken", "error_class": "internal"}

    async with make(answer=answer) as stand:
        for number in range(6):
            assert TOOL in {one.name for one in stand.desk.offers()}
            await ask(stand.desk, TOOL, {"url": f"http://site/{number}"})
        assert (await ask(stand.desk, TOOL, GOOD)).is_error  # the tool may have other targets
        assert FINISH in {one.name for one in stand.desk.offers()}


async def test_what_is_not_covered_is_not_reserved(make: MakeStand) -> None:
    async with make(tokens=100) as stand:
        await stand.desk.reserve(tokens=60)
        with pytest.raises(BudgetExceeded):
            await stand.desk.reserve(tokens=60)


async def test_what_was_not_used_is_given_back(make: MakeStand) -> None:
    async with make(tokens=100) as stand:
        reserved = await stand.desk.reserve(tokens=60)
        await reserved.settle(TurnUsage(input_tokens=20, output_tokens=5))
        await stand.desk.reserve(tokens=75)
        with pytest.raises(BudgetExceeded):
            await stand.desk.reserve(tokens=1)


@pytest.mark.parametrize("usage", [None, TurnUsage(), TurnUsage(input_tokens=2)])
async def test_what_nobody_knows_stays_spent(make: MakeStand, usage: TurnUsage | None) -> None:
    async with make(tokens=100) as stand:
        reserved = await stand.desk.reserve(tokens=60)
        await reserved.settle(usage)
        with pytest.raises(BudgetExceeded):
            await stand.desk.reserve(tokens=41)


async def test_without_a_budget_for_a_model_nothing_is_reserved(make: MakeStand) -> None:
    async with make(tokens=None) as stand:
        with pytest.raises(BudgetExceeded):
            await stand.desk.reserve(tokens=1)


async def test_a_turn_is_taken_when_the_one_before_it_was_left(make: MakeStand) -> None:
    taken: list[str] = []

    async def take(desk: Desk, probe: str) -> None:
        async with desk.turn(probe):
            taken.append(f"{probe} in")
            await anyio.lowlevel.checkpoint()
            taken.append(f"{probe} out")

    async with make() as stand, anyio.create_task_group() as both:
        both.start_soon(take, stand.desk, "first")
        both.start_soon(take, stand.desk, "second")
    assert taken == ["first in", "first out", "second in", "second out"]


async def test_who_is_at_one_probe_may_finish_when_that_is_settled(make: MakeStand) -> None:
    async with make() as stand:
        assert stand.desk.next_probe(["first"]) == "second"
        assert "second" not in stand.desk.brief("first").plan
        async with stand.desk.turn("first") as turn:
            assert (await turn.ask("a", FINISH, {"detail": "x"})).is_error
            await turn.ask("b", RUN_PROBE, {"probe": "first"})
            assert not (await turn.ask("c", FINISH, {"detail": "x"})).is_error
        assert await stand.desk.more("first") == ""
        assert await stand.desk.more("second")
