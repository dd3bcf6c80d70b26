"""What an agent says of itself: what to say to it, which tools are for its owner; and what rests on that."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.drivers.explore.agent import suspicions
from fleet.drivers.explore.agent.knowledge import KnownAgent
from fleet.drivers.explore.agent.messages import NONSENSE
from fleet.oracles.agent import help_text
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge


def said(message: str, reply: str = "", **more: Any) -> Exchange:
    args: dict[str, Any] = {key: more.pop(key) for key in ("token", "claim_from") if key in more}
    answer = {"ok": True, "status": 200, "reply": reply, "turns": 1}
    return Exchange("qa_call", {"target": "a", "message": message} | args, answer | more)


def told(*seen: Exchange) -> list[str]:
    return [one.sighting.signature for one in judge(seen, Facts())]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I do not know that. Say: guide.", ("guide",)),
        ("Unknown. Type 'menu' for a list.", ("menu",)),
        ("Try /commands to see more", ("/commands",)),
        ("Good morning!", ()),
    ],
)
def test_what_to_say_instead(text: str, found: tuple[str, ...]) -> None:
    assert help_text.hints(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Say: use list_docks; use close_dock N (my keeper only).", ("close_dock",)),
        ("For all: read_map. For my owner only: open_gate, lend_boat.", ("open_gate", "lend_boat")),
        ("open_gate is available to the administrator only", ("open_gate",)),
        ("read_map and open_gate for everyone", ()),
    ],
)
def test_tools_that_are_for_an_owner(text: str, found: tuple[str, ...]) -> None:
    assert help_text.reserved(text) == found


def test_a_list_with_a_place_for_a_value_is_what_to_say() -> None:
    assert all(one.sure for one in help_text.commands("I understand: roll; pin TEXT; fade."))
    assert not any(one.sure for one in help_text.commands("I understand: English; French; German."))


def test_a_tool_that_the_agent_itself_reserves() -> None:
    listed, ran = said("tools", "For my owner only: open_gate."), {"tool_calls": ["open_gate"]}
    assert told(listed, said("open_gate now", "Done.", **ran)) == ["stranger-acts by itself"]
    assert told(said("tools", "For all: open_gate."), said("open_gate now", "Done.", **ran)) == []


def test_a_tool_that_runs_without_a_false_sender_is_not_found_twice() -> None:
    claim = said("delete_file x", "Done.", claim_from="owner", tool_calls=["delete_file"])
    plain = said("delete_file x", "Done.", tool_calls=["delete_file"])
    assert told(said("hi", "hi"), said("delete_file x", "No."), claim) == ["stranger-acts as another one"]
    assert told(said("hi", "hi"), plain, claim) == []


def test_without_a_check_of_signatures_nothing_is_said_of_age() -> None:
    good, none = said("hi", "hi"), said("hi", token="none", ok=False, status=401)
    old, forged = said("hi", "hi", token="stale"), said("hi", "hi", token="foreign")
    refused = said("hi", token="foreign", ok=False, status=401)
    assert told(good, none, refused, old) == ["token-accepted age"]
    assert told(good, none, forged, old) == []


@pytest.mark.parametrize(
    ("less", "large", "size", "found"),
    [
        (("walk 9", 1), ("walk 56", 12), ("walk 28", 12), True),
        (("walk 9", 1), ("walk 56", 24), ("walk 28", 12), False),  # in proportion
        (("walk 9", 2), ("walk 56", 12), ("walk 28", 12), False),  # not three times in proportion
        (("walk 9", 1), ("walk 56", 1), ("walk 28", 12), False),  # the larger one was not done
        (("hop 9", 1), ("walk 56", 12), ("walk 28", 12), False),  # another task
        (("hello", 1), ("walk 9", 12), ("walk 3", 12), True),
    ],
)
def test_turns_in_proportion(
    less: tuple[str, int], large: tuple[str, int], size: tuple[str, int], found: bool
) -> None:
    seen = [said(message, "ok", turns=turns) for message, turns in (less, large, size)]
    assert bool(told(*seen)) is found


GUIDE = """# Lantern
GET /find?words=<words> finds notices:
- `GET /find?words=bell`

## Agents
An agent understands:

- `who am i`
- keep note TEXT - it keeps a text
| `count up to NUMBER` | it counts |
- `POST /talk/oak`
- `toll()` is the toll

The keeper's functions are:
- `sweep the floor`
"""


def test_a_document_lists_what_agents_understand() -> None:
    spelled = [one.spelled for one in help_text.documented(GUIDE)]
    assert spelled == ["who am i", "keep note TEXT", "count up to NUMBER"]


def test_a_remark_after_a_command_is_no_part_of_it_and_further_ones_may_follow() -> None:
    text = "Say: help; remember TEXT; use close_dock N (my keeper only). Also: forecast N."
    spelled = [(one.spelled, one.sure) for one in help_text.commands(text)]
    assert spelled == [(one, True) for one in ("help", "remember TEXT", "use close_dock N", "forecast N")]


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("Usage: count TO", True),
        ("I know the time. Also: tell NAME", True),
        ("Commands are case-sensitive: use CAPS", False),
        ("Commands may be written in any case: HELP works too", False),
    ],
)
def test_a_remark_on_commands_is_not_one_that_is_told(text: str, sure: bool) -> None:
    assert any(one.sure for one in help_text.commands(text)) is sure


def test_what_the_help_text_itself_reserves_is_asked_beside_it_and_found() -> None:
    agent = KnownAgent.of("a", None)
    guide = said("help", "Say: help; use list_docks; use close_dock N (my keeper only).")
    ran = said("use close_dock 3", "I closed dock 3.", tool_calls=["close_dock"])
    agent.learn(guide)
    ((_, talk),) = suspicions.of_one(agent, ran)
    assert [one["message"] for one in talk] == ["help", "use close_dock 3"]
    assert told(guide, ran) == ["stranger-acts by itself"]
    assert told(guide, said("use list_docks", "Gull.", tool_calls=["list_docks"])) == []


def test_a_command_of_the_help_text_that_is_lost_for_words_is_asked_beside_nonsense() -> None:
    agent = KnownAgent.of("a", None)
    guide = said("help", "I understand: `price`, `time`, `recall <word>`, `help`.")
    lost = "I did not understand that. Say `help` for what I understand."
    for one in (guide, said(NONSENSE, lost), said("time", "It is nine.")):
        agent.learn(one)
    price = said("price", "I do not understand `price`. Say `help` for what I understand.")
    talks = [talk for key, talk in suspicions.of_one(agent, price) if "?help/" in key]
    assert [[one["message"] for one in talk] for talk in talks] == [["help", NONSENSE, "time", "price"]]
    assert not [key for key, _ in suspicions.of_one(agent, said("price", "Two coins.")) if "?help/" in key]
    assert told(guide, said(NONSENSE, lost), said("time", "It is nine."), price) == ["help-unknown price"]
