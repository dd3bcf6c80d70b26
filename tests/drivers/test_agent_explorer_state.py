"""What the explorer of agents keeps between runs, what it does when it is refused, and its order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from fleet.config import Platform
from fleet.devnet.surfaces.herbarium import Herbarium
from fleet.drivers.desk import Question
from fleet.drivers.explore.agent.explorer import AgentExplorer
from fleet.drivers.explore.port import ExplorerContext
from fleet.drivers.explore.table import chosen
from fleet.runs.call.guest_protocol import bad_args
from sandbox.tools import TOOLS


def ground(*agents: str, acts: bool = True) -> ExplorerContext:
    chain = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}
    profile = Platform.model_validate({"name": "p", "chain": chain, "call_targets": agents})
    return ExplorerContext(platform=profile, tools=frozenset({"qa_call"}), acts=acts)


def explorer(state: Mapping[str, Any] | None = None, *agents: str, seed: str = "s") -> AgentExplorer:
    return AgentExplorer(ground(*(agents or ("fern",))), Random(seed), state or {})


def learned(asking: AgentExplorer, questions: list[Question], platform: Herbarium) -> None:
    for question in questions:
        asking.learn(question, [platform.answer(step.args) for step in question.steps])


def spelled(questions: list[Question]) -> list[str]:
    return [json.dumps([step.args for step in one.steps], sort_keys=True) for one in questions]


def everything(asking: AgentExplorer, platform: Herbarium) -> list[str]:
    asked: list[str] = []
    while questions := list(asking.ask(48)):
        assert sum(len(one.steps) for one in questions) <= 48
        asked += spelled(questions)
        learned(asking, questions, platform)
    return asked


def test_it_is_in_the_table_and_needs_its_tool() -> None:
    assert list(chosen(["agent"], frozenset({"qa_call"}))) == ["agent"]
    assert list(chosen(["agent"], frozenset({"qa_fetch"}))) == []


def test_the_same_seed_asks_the_same_and_no_question_twice() -> None:
    first, second = everything(explorer(), Herbarium()), everything(explorer(), Herbarium())
    assert first == second
    assert len(first) == len(set(first))


def test_every_question_has_valid_arguments() -> None:
    for question in everything(explorer(), Herbarium()):
        assert [bad_args(TOOLS["qa_call"], args) for args in json.loads(question)] == [None] * len(
            json.loads(question)
        )


def test_the_next_run_goes_on_and_the_one_after_all_begins_again() -> None:
    one, platform = explorer(), Herbarium()
    asked = []
    for _ in range(3):
        questions = list(one.ask(20))
        asked += spelled(questions)
        learned(one, questions, platform)
    state = json.loads(json.dumps(one.state()))
    other = explorer(state)
    rest = everything(other, platform)
    again = set(asked) & set(rest)  # what another reason asks in the same words
    assert len(again) <= 3, again
    assert other.state()["done"] is True
    assert everything(explorer(other.state(), seed="t"), platform)[0] == asked[0]


def test_breadth_over_agents_comes_first() -> None:
    one, platform = explorer(None, "fern", "osk"), Herbarium()
    seen: list[set[str]] = []
    for _ in range(2):
        questions = list(one.ask(48))
        seen.append({str(step.args["target"]) for each in questions for step in each.steps})
        learned(one, questions, platform)
    assert seen == [{"fern", "osk"}] * 2


def test_a_suspicion_that_had_no_room_is_asked_by_the_next_run() -> None:
    one, platform = explorer(), Herbarium("not-read-back")
    while not one.state()["suspected"]:
        learned(one, list(one.ask(48)), platform)
    state = json.loads(json.dumps(one.state()))
    ((_, talk), *_) = state["suspected"]
    (first, *_) = explorer(state).ask(len(talk))
    assert [step.args for step in first.steps] == talk


@pytest.mark.parametrize("status", [402, 429])
def test_a_platform_that_has_enough_is_left_alone_and_asked_again_later(status: int) -> None:
    one = explorer()
    asked = 0
    while questions := list(one.ask(48)):
        asked += len(questions)
        for question in questions:
            one.learn(question, [{"ok": False, "status": status} for _ in question.steps])
    assert asked <= 48
    assert one.state()["asked"] == []


def test_without_acts_and_without_agents_nothing_is_asked() -> None:
    assert AgentExplorer(ground("fern", acts=False), Random(0), {}).ask(48) == []
    assert AgentExplorer(ground(), Random(0), {}).ask(48) == []


@pytest.mark.parametrize(
    "state",
    [
        {"asked": "x", "agents": 7, "suspected": [["k"], ["k", [1]], ["k", [{"target": "stranger"}]], 7]},
        {"asked": [1, None], "agents": {"fern": [1]}},
        {"agents": {"fern": {"commands": [3, "motto <text>"], "odd": 4, "tools": "x", "fresh": {}}}},
    ],
)
def test_a_state_that_does_not_fit_is_left_out(state: Mapping[str, Any]) -> None:
    assert explorer(state).ask(48)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"status": 200, "ok": True, "reply": "{name} {face:x} `{run} TEXT`; " * 40, "tool_calls": [1, None]},
        {"status": "x", "ok": True, "reply": None, "turns": "many", "charged": None, "claimed": 3},
        {"status": 200, "ok": True, "reply": "Commands: " + "; ".join(f"c{at} X" for at in range(500))},
    ],
)
def test_whatever_is_answered_is_data(result: dict[str, Any]) -> None:
    one = explorer()
    for _ in range(12):
        for question in one.ask(48):
            assert not any(
                "{" in str(step.args.get("message")) for step in question.steps if "fill" in step.args
            )
            one.learn(question, [result for _ in question.steps])
    json.dumps(one.state())


def test_an_agent_without_help_is_asked_what_the_guide_writes_down() -> None:
    chain = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}
    web = {"site": "http://p.test", "proxy": "http://p.test"}
    profile = Platform.model_validate(
        {
            "name": "p",
            "chain": chain,
            "call_targets": ["fern"],
            "web": web,
            "targets": {"guide": "{site}/llms.txt"},
        }
    )
    asking = AgentExplorer(
        ExplorerContext(platform=profile, tools=frozenset({"qa_call", "qa_fetch"}), acts=True),
        Random("s"),
        {},
    )
    first = asking.ask(48)
    assert [one.steps[0].tool for one in first] == ["qa_fetch"] * len(first)
    for one in first:
        asking.learn(
            one, [{"status": 200, "text": "An agent understands:\n- `stash KEY VALUE`\n- `peek KEY`"}]
        )
    for one in (learning := asking.ask(48)):
        asking.learn(one, [{"ok": True, "status": 200, "reply": ""} for _ in one.steps])
    assert not any("stash" in one for one in spelled(list(learning)))
    assert any("stash" in one for one in spelled(list(asking.ask(48))))
