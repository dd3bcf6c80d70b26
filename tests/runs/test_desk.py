"""The desk of a run: what a hostile, lost or lying driver gets, and what it leaves on the disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.broker.egress_record import EgressRecord
from fleet.clock import SystemClock
from fleet.drivers.desk import FINISH, MAX_REPLY, REPORT_FINDING, RUN_PROBE, Desk, ProviderFailed, Reply
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded, Unreachable
from fleet.events.model import MessageSaid, ProbeSkipped, TurnUsage
from fleet.findings.outage import WORD
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.personas.model import FailFast, PolicySection
from fleet.runs.desk.desk import RunDesk
from fleet.runs.desk.turn import MAX_CALLS
from fleet.runs.drive import counts
from fleet.runs.driver_choice import PLAYBOOK, DriverChoice, choose_driver
from tests.runs.table import RUN, Table, look, persona, seated, well

pytestmark = pytest.mark.anyio

ANY = replace(PLAYBOOK, explores=True)
ACT = {"target": "claude", "message": "hello"}


async def ask(desk: Desk, tool: str, args: Mapping[str, Any] | str, call_id: str = "c") -> Reply:
    async with desk.turn() as turn:
        return await turn.ask(call_id, tool, args)


async def over(desk: Desk) -> RunOver:
    with pytest.raises(RunOver) as found:
        async with desk.turn():
            pass
    return found.value


def states(desk: RunDesk) -> dict[str, str]:
    return {item.id: item.state for item in desk.state.plan.items}


# -- plan and state on the disk -----------------------------------------------------------------------------


async def test_a_playbook_looks_at_everything_and_is_done(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"), look("b", "result.status == 418"))) as table:
        assert await table.drive() == ""
        assert states(table.desk) == {"a": "healthy", "b": "finding"}
        assert [event.failure for event in table.said("turn")] == ["", ""]
        assert [event.probe for event in table.said("finding.raised")] == ["b"]
        assert len(table.jail.calls) == 5  # two looks, and three more for the proof
        assert (table.folder / "PLAN.md").read_text() == table.desk.state.plan.render(RUN, "qa-paper")
        assert counts(table.folder, RUN) == (2, None, "")


async def test_a_plan_is_written_when_it_changes_and_counts_at_every_turn(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"), look("b"))) as table:
        plan, state = table.folder / "PLAN.md", table.folder / "state.json"
        seen = []

        async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
            seen.append(
                (plan.read_text().count("inconclusive"), json.loads(state.read_text())["items"][0]["state"])
            )
            return await well(tool, args)

        table.jail.answer = answer
        await ask(table.desk, RUN_PROBE, {"probe": "a"})
        assert seen == [(1, "inconclusive")]
        assert plan.read_text() == table.desk.state.plan.render(RUN, "qa-paper")
        files = plan.stat().st_ino, state.stat().st_ino
        await ask(table.desk, RUN_PROBE, {"probe": "a"})
        assert plan.stat().st_ino == files[0]
        assert state.stat().st_ino != files[1]
        assert counts(table.folder, RUN) == (2, None, "")


async def test_beginning_twice_changes_nothing(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        desk = table.desk
        await ask(desk, RUN_PROBE, {"probe": "a"})
        files = {path.name: path.read_bytes() for path in table.folder.iterdir() if path.is_file()}
        again = replace(desk)
        assert again.begin() is False
        assert {path.name: path.read_bytes() for path in table.folder.iterdir() if path.is_file()} == files
        assert again.state == desk.state
        assert (again.state.turns, states(again)) == (1, {"a": "healthy"})


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state | {"turns": "abc"},
        lambda state: state | {"turns": -1},
        lambda state: state | {"retries_used": 0, "turns": 0},
    ],
)
async def test_counts_that_somebody_changed_end_the_run_before_the_next_turn(
    tmp_path: Path, change: Any
) -> None:
    async with seated(tmp_path, persona(look("a"), look("b"))) as table:
        await ask(table.desk, RUN_PROBE, {"probe": "a"})
        path = table.folder / "state.json"
        changed = change(json.loads(path.read_text()))
        path.write_text(json.dumps(changed))
        assert (await over(table.desk)).outcome == "state_invalid"
        assert len(table.jail.calls) == 1
        assert (await over(table.desk)).outcome == "state_invalid"  # and stays over


async def test_a_state_that_was_damaged_is_mended_and_the_run_goes_on(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"), look("b"))) as table:
        await ask(table.desk, RUN_PROBE, {"probe": "a"})
        path = table.folder / "state.json"
        path.write_bytes(path.read_bytes()[:40])
        await ask(table.desk, RUN_PROBE, {"probe": "b"})
        assert table.desk.state.plan.looked() == 2
        assert "the run's state was damaged" in table.decisions()


async def test_a_brief_that_somebody_changed_ends_the_run(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        desk, path = table.desk, table.folder / "GUARDRAILS.md"
        path.chmod(0o600)
        path.write_text(path.read_text() + "- except today\n")
        found = await over(desk)
        assert (found.outcome, found.detail.split(":")[0]) == ("state_invalid", "GUARDRAILS.md")
        assert table.jail.calls == []


async def test_the_header_has_the_digests_of_what_is_on_the_disk(tmp_path: Path) -> None:
    import hashlib

    async with seated(tmp_path, persona(look("a"))) as table:
        assert table.desk.state.turns == 0
        (header,) = table.said("header")
        for name, digest in header.brief.items():
            assert hashlib.sha256((table.folder / f"{name}.md").read_bytes()).hexdigest() == digest
        assert header.groups == {"web": ("qa_fetch",)}
        assert header.policy["mode"] == "unlimited_batch"
        assert dict(table.desk.brief().digests) == header.brief


# -- limits of the run --------------------------------------------------------------------------------------


async def test_four_turns_are_four_turns_for_all_probes_together(tmp_path: Path) -> None:
    probes = [look(f"p{n}", "history.nothing > 1.0") for n in range(3)]  # never decided
    policy = PolicySection(max_turns_per_run=4, retry_budget=9)
    async with seated(tmp_path, persona(*probes, policy=policy)) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert (found.value.outcome, len(table.said("turn"))) == ("iteration_budget", 4)


async def blind(table: Table) -> str:
    """The detail of a run that looked at nothing: that is no good end."""
    with pytest.raises(RunOver) as over:
        await table.drive()
    assert over.value.outcome == "blind"
    return over.value.detail


async def test_second_looks_are_shared(tmp_path: Path) -> None:
    probes = [look(f"p{n}", "history.nothing > 1.0") for n in range(3)]
    async with seated(tmp_path, persona(*probes, policy=PolicySection(retry_budget=2))) as table:
        assert await blind(table) == "0 of 3 probes looked at"
        assert len(table.said("turn")) == 5
        assert table.desk.state.retries_used == 2


async def test_a_probe_that_passed_is_not_run_again(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"), look("b")), hand=ANY) as table:
        for _ in range(3):
            reply = await ask(table.desk, RUN_PROBE, {"probe": "a"})
        assert (reply.content["state"], reply.content["repeated"]) == ("healthy", True)
        assert len(table.jail.calls) == 1


async def test_six_turns_without_news_are_enough(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        for number in range(6):
            await ask(table.desk, "qa_fetch", {"url": f"http://site/{number}"})
        found = await over(table.desk)
        assert (found.outcome, found.detail) == ("no_progress", "6 turns with the same open probes")


async def test_what_explores_may_go_on_for_a_while_when_the_plan_is_done(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        await ask(table.desk, RUN_PROBE, {"probe": "a"})
        for number in range(6):
            await ask(table.desk, "qa_fetch", {"url": f"http://site/{number}"})
        assert (await over(table.desk)).outcome == "done"


async def test_the_dial_skips_a_probe_and_a_person_is_awaited_when_it_permits_nothing(tmp_path: Path) -> None:
    act = look("act", tool="qa_call", **ACT)
    async with seated(
        tmp_path, persona(act, look("b"), tools=("qa_call", "qa_fetch")), rung=Rung.OBSERVE
    ) as table:
        # `act` alone is out of reach, `b` is not
        assert await table.drive() == "1 of 2 probes looked at"
        assert states(table.desk) == {"act": "skipped", "b": "healthy"}
    other = tmp_path / "other"
    other.mkdir()
    async with seated(other, persona(act, tools=("qa_call",)), rung=Rung.OBSERVE) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert found.value.outcome == "awaiting_human"
        assert table.said("gate.denied") == []


async def test_no_person_is_awaited_for_a_part_that_is_not_there(tmp_path: Path) -> None:
    act = look("act", tool="qa_call", **ACT).model_copy(update={"needs": ("language:rustlite",)})
    async with seated(tmp_path, persona(act, tools=("qa_call",)), rung=Rung.OBSERVE) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert (found.value.outcome, states(table.desk)) == ("blind", {"act": "not_applicable"})


async def test_stop_ends_the_run_before_the_next_turn(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        desk = table.desk
        table.stop()
        found = await over(desk)
        assert (found.outcome, found.detail.startswith("STOP is set: enough")) == ("stopped", True)
        with pytest.raises(RunOver):
            await desk.more()


async def test_a_target_that_stays_strained_ends_the_run(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        session = table.drive.runner.session
        for strained_s in (119.0, 120.0):
            await session.call("qa_fetch", {"url": "http://site/"})
            session._noted(EgressRecord(verb="GET", host="site", what="/", status=200, strained_s=strained_s))
        with pytest.raises(RunOver) as found:
            await session.call("qa_fetch", {"url": "http://site/"})
        assert found.value.outcome == "target_degraded"
        assert found.value.detail.startswith("site has answered 503 or slowly for 120 s, although")


async def test_a_call_after_the_window_closed_ends_the_run(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        session = table.drive.runner.session
        session._gate._closed = lambda: "outside the windows"
        with pytest.raises(RunOver) as found:
            await session.call("qa_fetch", {"url": "http://site/"})
        assert (found.value.outcome, found.value.detail) == ("window_closed", "outside the windows")
        assert table.jail.calls == []


async def test_a_driver_that_hides_the_end_of_the_run_is_over_all_the_same(tmp_path: Path) -> None:
    async def stubborn(desk: Desk) -> str:
        async with desk.turn() as turn:
            for _ in range(2):
                try:
                    await turn.ask("c", "qa_fetch", {"url": "http://site/"})
                except RunOver:
                    table.jail.calls.append(("swallowed", {}))
        return "all is well"

    one = persona(look("a"), calls=1)
    async with seated(tmp_path, one, hand=DriverChoice(name="mcp", drive=stubborn)) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert found.value.outcome == "budget_exceeded"
        assert [tool for tool, _ in table.jail.calls] == ["qa_fetch", "swallowed"]


async def test_a_turn_in_which_the_run_ended_says_so_when_it_is_left(tmp_path: Path) -> None:
    async def deaf(desk: Desk) -> None:
        async with desk.turn() as turn:
            for _ in range(2):
                with suppress(RunOver):
                    await turn.ask("c", "qa_fetch", {"url": "http://site/"})

    async with seated(tmp_path, persona(look("a"), calls=1), hand=ANY) as table:
        with pytest.raises(RunOver, match="budget_exceeded"):
            await deaf(table.desk)


async def test_a_driver_that_leaves_early_is_not_done(tmp_path: Path) -> None:
    async def lazy(desk: Desk) -> str:
        await ask(desk, RUN_PROBE, {"probe": "b"})
        return "all is well"

    one = persona(look("a"), look("b", "result.status == 418"))
    async with seated(tmp_path, one, hand=DriverChoice(name="mcp", drive=lazy)) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert (found.value.outcome, found.value.detail) == ("incomplete", "1 of 2 probes are open")
        assert [event.state for event in table.said("finding.verified")] == ["confirmed"]


async def test_nothing_planned_is_not_done(tmp_path: Path) -> None:
    async with seated(tmp_path, persona()) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert (found.value.outcome, found.value.detail) == ("incomplete", "nothing was planned")


async def test_finish_is_refused_while_probes_are_open_and_never_for_ever(tmp_path: Path) -> None:
    policy = PolicySection(max_continuations=2)
    async with seated(tmp_path, persona(look("a"), policy=policy), hand=ANY) as table:
        for _ in range(2):
            reply = await ask(table.desk, FINISH, {})
            assert reply.is_error
            assert "a" in reply.content["error"]
        with pytest.raises(RunOver) as found:
            await ask(table.desk, FINISH, {})
        assert found.value.outcome == "max_continuations"


async def test_finish_is_accepted_when_the_plan_is_done(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        await ask(table.desk, RUN_PROBE, {"probe": "a"})
        assert await ask(table.desk, FINISH, {"detail": "bye"}) == Reply("c", FINISH, {"ok": True})


# -- calls of one turn --------------------------------------------------------------------------------------


async def test_eight_hundred_calls_in_one_turn_are_thirty_two(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        async with table.desk.turn() as turn:
            replies = [await turn.ask(str(n), "qa_fetch", {"url": f"http://site/{n}"}) for n in range(800)]
        assert len(table.jail.calls) == MAX_CALLS
        assert [reply.is_error for reply in replies] == [False] * MAX_CALLS + [True] * (800 - MAX_CALLS)
        (record,) = table.said("turn")
        assert len(record.proposed) == len(record.executed) == MAX_CALLS
        assert record.validation["over_the_cap"] == 800 - MAX_CALLS
        assert len(table.events) < 4 * MAX_CALLS


async def test_a_fourth_call_that_is_none_fails_the_turn(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        for _ in range(3):
            async with table.desk.turn() as turn:
                for n in range(200):
                    reply = await turn.ask(str(n), f"nothing{n}", {})
                    assert reply.is_error
        records = table.said("turn")
        assert [one.failure for one in records] == ["invalid_action_exhausted"] * 3
        assert [one.validation["retries"] for one in records] == [4, 4, 4]
        assert [len(one.executed) for one in records] == [4, 4, 4]
        assert records[0].validation["rejections"][0] == {
            "tool": "nothing0",
            "pointer": "",
            "error": "no tool 'nothing0' is on offer",
        }
        assert await table.world.journal.spent(RUN) == {"calls": 12}
        assert (await over(table.desk)).outcome == "agent_stuck"
        assert table.jail.calls == []


async def test_three_mistakes_of_a_turn_are_forgiven(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        async with table.desk.turn() as turn:
            replies = [await turn.ask("c", "qa_fetch", {"url": 7}) for _ in range(3)]
            good = await turn.ask("c", "qa_fetch", {"url": "http://site/"})
        assert [reply.content["pointer"] for reply in replies] == ["/url"] * 3
        assert not good.is_error
        (record,) = table.said("turn")
        assert (record.failure, record.validation["ok"], record.validation["retries"]) == ("", False, 3)


@pytest.mark.parametrize(
    "args",
    [
        "{",
        '{"url"',
        {"url": float("nan")},
        {"url": "\ud800"},
        {"url": b"raw"},
        {"url": "x" * 200_000},
        {"url": {"a": {}}},
    ],
)
async def test_arguments_of_any_shape_are_answered(tmp_path: Path, args: Any) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        reply = await ask(table.desk, "qa_fetch", args)
        assert reply.is_error
        assert table.jail.calls == []
        json.dumps(reply.content)


async def test_hostile_names_are_clean_in_every_record(tmp_path: Path) -> None:
    evil = "x\x1b[2J\u202e\ud800" * 500
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        reply = await ask(table.desk, evil, {evil: evil}, call_id=evil)
        assert reply.call_id == evil
        raw = (table.folder / "trajectory.jsonl").read_text()
        assert not {"\x1b", "\u202e"} & set(raw + table.decisions())
        assert max(map(len, raw.splitlines())) < 8_000


async def test_an_act_is_done_once_and_a_third_time_is_the_end(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"), tools=("qa_call", "qa_fetch")), hand=ANY) as table:
        first = await ask(table.desk, "qa_call", ACT)
        second = await ask(table.desk, "qa_call", dict(reversed(ACT.items())))
        assert len(table.jail.calls) == 1
        assert second.content == {"repeated": True, **first.content}
        with pytest.raises(RunOver) as found:
            await ask(table.desk, "qa_call", ACT)
        assert (found.value.outcome, found.value.detail.split(":")[0]) == ("agent_stuck", "repeated_call")
        assert len(table.jail.calls) == 1


async def test_a_look_may_be_repeated(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        for _ in range(5):
            assert not (await ask(table.desk, "qa_fetch", {"url": "http://site/"})).is_error
        assert len(table.jail.calls) == 5


async def test_an_act_that_was_refused_may_be_asked_for_again_when_the_dial_is_turned(tmp_path: Path) -> None:
    one = persona(look("a"), tools=("qa_call", "qa_fetch"))
    async with seated(tmp_path, one, hand=ANY, rung=Rung.OBSERVE) as table:
        replies = [await ask(table.desk, "qa_call", ACT) for _ in range(4)]
        assert {reply.content["error"].split(":")[0] for reply in replies} == {"dial"}
        write_dial(table.world.state, Rung.EXERCISE, "a test", "test", SystemClock())
        assert not (await ask(table.desk, "qa_call", ACT)).is_error


async def test_a_name_that_a_driver_took_ahead_is_not_given_to_a_probe(tmp_path: Path) -> None:
    """A liar mints the names that the probes would mint: they would fail, and that would be a finding."""
    mint = look("mint", "result.ok", tool="qa_create", name="{name}")
    async with seated(tmp_path, persona(mint, tools=("qa_create",)), hand=ANY) as table:
        for number in (1, 2, 4):
            await ask(table.desk, "qa_create", {"name": f"qa-{RUN}-{number}"})
        await ask(table.desk, RUN_PROBE, {"probe": "mint"})
        assert table.jail.calls[-1] == ("qa_create", {"name": f"qa-{RUN}-3"})


async def test_the_name_of_a_drivers_own_calls_is_one_name(tmp_path: Path) -> None:
    one = persona(look("a"), tools=("qa_create", "qa_fetch"))
    async with seated(tmp_path, one, hand=ANY) as table:
        await ask(table.desk, "qa_create", {"name": "{name}"})
        await ask(table.desk, "qa_fetch", {"url": "{face:{name}}x"})
        assert [args.get("url", args.get("name")) for _, args in table.jail.calls] == [
            f"qa-{RUN}-1",
            f"http://qa-{RUN}-1.face/x",
        ]


async def test_an_answer_is_masked_cleaned_and_cut_with_a_mark(tmp_path: Path) -> None:
    key = "ab" * 32

    async def answer(_tool: str, _args: dict[str, Any]) -> dict[str, Any]:
        return {**await well("qa_fetch", {}), "text": f"key {key} \x1b[2J" + "z" * 60_000}

    async with seated(tmp_path, persona(look("a")), hand=ANY, answer=answer) as table:
        reply = await ask(table.desk, "qa_fetch", {"url": "http://site/"})
        text = reply.content["text"]
        assert len(json.dumps(reply.content)) <= MAX_REPLY
        assert "[cut] " in text
        assert key not in text
        assert "\x1b" not in text
        (record,) = table.said("turn")
        assert (record.observation["replies"], record.observation["cut"]) == (1, 1)


# -- turns --------------------------------------------------------------------------------------------------


async def test_a_turn_that_timed_out_writes_nothing_later(tmp_path: Path) -> None:
    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        await anyio.sleep(2.4)
        return await well(tool, args)

    one = persona(look("a"), look("b"), policy=PolicySection(retry_budget=1))
    async with seated(tmp_path, one, answer=answer, turn_s=2.0) as table:
        assert await blind(table) == "0 of 2 probes looked at"
        await anyio.sleep(1)
        kinds = [event.type for event in table.events]
        turn = ["turn.started", "decision.made", "tool.requested", "turn"]
        assert kinds == ["header", *["phase.changed"] * 3, *turn * 3]
        assert [one.failure for one in table.said("turn")] == ["turn_timeout"] * 3
        assert states(table.desk) == {"a": "inconclusive", "b": "inconclusive"}
        assert "turn 3 is abandoned" in table.decisions()


async def test_only_messages_are_shown(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        async with table.desk.turn() as turn:
            turn.show(MessageSaid(text="hello"))
            turn.show(ProbeSkipped(probe="a", reason="because I say so"))
        assert [event.text for event in table.said("message.said")] == ["hello"]
        assert table.said("probe.skipped") == []


@pytest.mark.parametrize("cost", ["abc", "-1", "NaN", "Infinity", "1e999", "9" * 50])
async def test_money_that_is_none_is_unknown(tmp_path: Path, cost: str) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        async with table.desk.turn() as turn:
            turn.used(TurnUsage(model="m", cost_usd=cost, input_tokens=-3))
        (record,) = table.said("turn")
        assert (record.usage.cost_usd, record.usage.input_tokens) == (None, None)


async def test_the_groups_counts_are_kept_for_the_next_start(tmp_path: Path) -> None:
    async def answer(_tool: str, _args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": False, "error": "x", "error_class": "unreachable"}

    probes = [look(f"p{n}") for n in range(5)]
    async with seated(tmp_path, persona(*probes), answer=answer) as table:
        assert await blind(table) == "0 of 5 probes looked at"
        (event,) = table.said("extension_disabled")
        assert (event.namespace, event.turn) == ("web site", 3)
        assert event.reason == "auto_disable: 3 consecutive failures, last: unreachable"
        asked = [event.probe for event in table.said("tool.requested")]
        # the control of the host after three failures, and then a look at what gave trouble
        assert asked == ["p0", "p1", "p2", "", WORD, WORD, WORD]
        assert states(table.desk) == {f"p{n}": "inconclusive" for n in range(5)}
        assert table.desk.state.withdrawn == ("web site",)


# -- before and beside --------------------------------------------------------------------------------------


async def sick() -> None:
    raise Unreachable("the chain is another one")


async def test_a_sick_platform_ends_the_run_before_any_tool(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), check=sick) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert (found.value.outcome, found.value.detail) == (
            "failed",
            "health check: the chain is another one",
        )
        assert [event.reason for event in table.said("check.failed")] == ["the chain is another one"]
        assert table.jail.calls == []


async def test_with_fail_fast_off_it_is_recorded_and_the_run_goes_on(tmp_path: Path) -> None:
    policy = PolicySection(fail_fast=FailFast(on_health_check_error=False))
    async with seated(tmp_path, persona(look("a"), policy=policy), check=sick) as table:
        assert await table.drive() == ""
        assert len(table.said("check.failed")) == 1


@pytest.mark.parametrize(("tool", "said"), [("qa_compile", 1), ("qa_fetch", 0)])
async def test_a_compiler_that_cannot_start_is_recorded_where_it_is_needed(
    tmp_path: Path, tool: str, said: int
) -> None:
    """Our trouble: the run goes on, since what needs no compiler can look."""

    async def missing() -> str:
        return "compiler: /opt/tc/rustlitec cannot be started here"

    async with seated(tmp_path, persona(look("a"), tools=(tool, "qa_fetch")), cannot_start=missing) as table:
        assert await table.drive() == ""
        reasons = [event.reason for event in table.said("check.failed")]
        assert reasons == ["could not look at the compiler: " + await missing()] * said


@pytest.mark.parametrize(
    "error", [ProviderFailed("429 again and again"), BudgetExceeded("no tokens are left")]
)
async def test_auto_goes_on_with_the_playbook(tmp_path: Path, error: Exception) -> None:
    async def model(desk: Desk) -> str:
        async with desk.turn() as turn:
            turn.failed("provider_error")
            raise error

    hand = DriverChoice(name="model", drive=model, model="openai:x", explores=True)
    async with seated(tmp_path, persona(look("a")), hand=hand) as table:
        why = f"the model ended: {error}"
        assert await table.drive() == f"{why}; the playbook looked at 1 of 1 probes"
        (event,) = table.said("driver.changed")
        assert (event.before, event.after, event.reason) == ("model", "playbook", str(error))
        assert states(table.desk) == {"a": "healthy"}
        assert "playbook drives instead of model" in table.decisions()
        assert [one.failure for one in table.said("turn")] == ["provider_error", ""]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ProviderFailed("down"), "failed"), (BudgetExceeded("none left"), "budget_exceeded")],
)
async def test_a_persona_that_insists_on_its_model_ends_as_that_did_and_has_looked(
    tmp_path: Path, error: Exception, outcome: str
) -> None:
    async def model(_desk: Desk) -> str:
        raise error

    hand = DriverChoice(name="model", drive=model)
    async with seated(tmp_path, persona(look("a"), driver="model"), hand=hand) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert found.value.outcome == outcome
        assert [event.after for event in table.said("driver.changed")] == ["playbook"]
        assert states(table.desk) == {"a": "healthy"}


async def test_who_drives_is_the_personas_and_the_configurations_choice(tmp_path: Path) -> None:
    model = DriverChoice(name="model", drive=PLAYBOOK.drive)
    async with seated(tmp_path, persona(look("a"))) as table:
        plain, wired = table.world, replace(table.world, model=lambda _: model)
        assert choose_driver(plain.model, persona(look("a"), tokens=9)) is PLAYBOOK
        assert choose_driver(wired.model, persona(look("a"), tokens=9)) is model
        assert choose_driver(wired.model, persona(look("a"), tokens=0)) is PLAYBOOK
        assert choose_driver(wired.model, persona(look("a"), driver="playbook", tokens=9)) is PLAYBOOK
        assert choose_driver(wired.model, persona(look("a"), driver="model")) is model
        with pytest.raises(Exception, match="cannot drive a run here"):
            choose_driver(plain.model, persona(look("a"), driver="model"))


async def test_the_most_that_a_call_may_cost_is_set_aside(tmp_path: Path) -> None:
    from decimal import Decimal

    def price(usage: TurnUsage) -> Decimal | None:
        return Decimal(usage.input_tokens or 0) + 5 * Decimal(usage.output_tokens or 0)

    hand = replace(ANY, price=price)
    async with seated(tmp_path, persona(look("a"), tokens=1_000), hand=hand) as table:
        reserved = await table.desk.reserve(tokens=100)
        assert await table.world.journal.spent(RUN) == {"tokens": 100, "usd_micro": 500_000_000}
        await reserved.settle(TurnUsage(input_tokens=10, output_tokens=1))
        assert await table.world.journal.spent(RUN) == {"tokens": 11, "usd_micro": 15_000_000}


def titles(table: Table) -> list[str]:
    return [line.partition(" - ")[2] for line in table.decisions().splitlines() if line.startswith("## ")]


async def test_every_skip_and_refusal_has_its_decision(tmp_path: Path) -> None:
    act = look("act", tool="qa_call", **ACT)
    one = persona(act, look("b", "history.nothing > 1.0"), look("c"), tools=("qa_call", "qa_fetch"))
    async with seated(tmp_path, one, rung=Rung.OBSERVE) as table:
        await table.drive()
        assert [title.partition(" (turn")[0] for title in titles(table)] == [
            "qa_call is refused by dial",
            "probe act is left without an answer",
            "probe b is left without an answer",
        ]


async def test_a_claim_without_steps_is_kept_as_a_decision_only(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), hand=ANY) as table:
        args = {"title": "the platform is slow", "severity": "high"}
        reply = await ask(table.desk, REPORT_FINDING, args)
        assert (reply.is_error, reply.content["pointer"]) == (True, "/steps")
        assert titles(table)[0].startswith("claim (needs-repro): the platform is slow")
        assert await table.world.journal.findings(RUN) == []


async def test_an_undecided_probe_is_not_looked_at_again_and_is_named(tmp_path: Path) -> None:
    probes = [look("a", "result.value.nothing == 1"), look("b")]
    async with seated(tmp_path, persona(*probes, policy=PolicySection(retry_budget=3))) as table:
        assert await table.drive() == "1 of 2 probes looked at, undecided: a"
        assert states(table.desk) == {"a": "undecided", "b": "healthy"}
        assert len(table.said("turn")) == 2
