"""What an oracle of unnamed functions asks for before it speaks: each part of its evidence, left out once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fleet.oracles import table
from fleet.oracles.chain import fourbyte, lookups, unnamed
from fleet.oracles.chain.simulated import of
from fleet.oracles.model import Exchange, Facts
from sandbox.chain.simulation import NAMES

HELD, EXCEEDED = unnamed.held_by_another.example, unnamed.constant_exceeded.example
LOOKUP = lookups.lookups_disagree.example
HOLDER, BY, THIRD = "0x" + "a1" * 20, "0x" + "57" * 20, "0x" + "03" * 20


def word(value: int | str) -> str:
    return f"0x{value if isinstance(value, int) else int(value, 16):064x}"


def judged(seen: Sequence[Exchange]) -> list[str]:
    return [one.oracle for one in table.judge(seen, Facts())]


def answered(seen: Sequence[Exchange], at: int, **result: Any) -> list[Exchange]:
    """The question with another answer in one place."""
    changed = [*seen]
    changed[at] = replace(seen[at], result={**seen[at].result, **result})
    return changed


def recorded(who: str) -> list[Exchange]:
    """The question with one view more, which the last call sets to an address."""
    (last,) = answered(
        HELD[3:], 0, before=[word(HOLDER), word(50), word(1)], after=[word(HOLDER), word(99), word(who)]
    )
    watch = [*last.args["watch"], f"0x00000013({7:064x})"]
    return [*HELD[:3], replace(last, args={**last.args, "watch": watch})]


WITHOUT: dict[str, Callable[[], Sequence[Exchange]]] = {
    "a refusal of a stranger": lambda: HELD[1:],
    "a holder who is accepted": lambda: answered(HELD, 1, succeeded=False),
    "a second value": lambda: [*HELD[:2], HELD[3]],
    "a value below what was there": lambda: answered(
        [*HELD[:2], replace(HELD[2], args={**HELD[2].args, "args": ["7", "60"]}), HELD[3]],
        2,
        after=[word(HOLDER), word(60)],
    ),
    "a value that was there": lambda: answered(HELD, 3, before=[word(HOLDER), word(0)]),
    "a part of the thing": lambda: answered(HELD, 1, after=[word(HOLDER), word(50)]),
    "a holder who sets it himself": lambda: answered(HELD, 1, after=[word(HOLDER), word(0)]),
    "an act that no event records": lambda: answered(HELD, 3, events=[f"{THIRD}:0x00{NAMES}"]),
    "an act that no view records": lambda: recorded(BY),
    "events at all": lambda: answered(HELD, 3, how="override"),
    "a holder": lambda: answered(HELD, 3, before=[word(0), word(50)], after=[word(0), word(99)]),
    "another holder": lambda: answered(HELD, 3, before=[word(BY), word(50)], after=[word(BY), word(99)]),
    "the caller's value": lambda: answered(HELD, 3, after=[word(HOLDER), word(98)]),
}


def test_the_examples_are_found() -> None:
    assert [judged(one) for one in (HELD, EXCEEDED, LOOKUP)] == [
        ["held-by-another"],
        ["constant-exceeded"],
        ["lookups-disagree"],
    ]


@pytest.mark.parametrize("part", WITHOUT)
def test_without_a_part_of_its_evidence_it_is_silent(part: str) -> None:
    assert judged(WITHOUT[part]()) == []


def test_another_view_that_changes_is_no_record() -> None:
    assert judged(recorded(THIRD)) == ["held-by-another"]


def given_away(to: str, before: str = HOLDER) -> list[Exchange]:
    last = replace(HELD[3], args={**HELD[3].args, "types": ["uint256", "address"], "args": ["7", THIRD]})
    return answered([*HELD[:2], last], 2, before=[word(before), word(50)], after=[word(to), word(50)])


def test_a_thing_that_a_stranger_gives_to_a_third() -> None:
    assert judged(given_away(THIRD)) == ["held-by-another"]
    for healthy in (given_away(BY), given_away("0x00"), given_away(THIRD, before="0x00")):
        assert judged(healthy) == []  # a claim of one's own, an end, a first holder


def made(holder: str, was: int = 0, becomes: int = 9) -> list[Exchange]:
    """The question with no second function that sets it: what a new thing begins with, instead."""
    views = [one.replace(f"{7:064x}", f"{8:064x}") for one in HELD[3].args["watch"]]
    args = {"simulate": "0x00000012", "types": [], "args": [], "sender": "stranger", "watch": views}
    answer = {"ok": True, "how": "simulate", "by": BY, "succeeded": True}
    answer |= {"before": [word(0), word(was)], "after": [word(holder), word(becomes)]}
    quiet = answered(HELD, 1, after=[word(HOLDER), word(50)])
    return [*quiet[:2], Exchange("qa_chain", args, answer), *quiet[2:]]


def test_what_a_new_thing_begins_with_is_of_the_thing() -> None:
    assert judged(made(BY)) == ["held-by-another"]
    assert judged(made(HOLDER)) == judged(made(BY, becomes=0)) == judged(made(BY, was=9)) == []


def test_a_limit_needs_a_constant_that_the_call_leaves_alone_and_both_edges() -> None:
    surface, small, refused, accepted = EXCEEDED
    assert judged([small, refused, accepted]) == judged([surface, refused, accepted]) == []
    assert judged([surface, small, accepted]) == []
    assert judged(answered(EXCEEDED, 3, after=[word(65)])) == []
    functions = {"0x0000000e": {"arguments": "", "mutability": "view", "reads": ["0:0"]}}
    assert judged(answered(EXCEEDED, 0, value=[{"functions": functions}])) == []


def test_a_lookup_that_finds_nothing_or_one_of_the_same_label_is_healthy() -> None:
    (read,) = LOOKUP
    views = [*read.args["watch"]]
    for index, value in ((7, word(0)), (1, word(400))):
        before = [*read.result["before"]]
        before[index] = value
        assert judged([replace(read, result={**read.result, "before": before})]) == []
    assert (views[7][:10], views[1][:10]) == ("0x00000010", "0x0000000f")


def test_a_name_is_believed_for_its_own_selector_alone() -> None:
    """What a question names is data: a signature that hashes to another selector names nothing here."""
    right, wrong = "turnTide(uint256)", "harmless()"
    args = {"simulate": fourbyte.selector_of(right), "watch": [fourbyte.selector_of("tideNow()")]}
    answer = {"ok": True, "succeeded": True, "before": ["0x1"], "after": ["0x2"]}
    for named, spoken, view in (
        ([right, "tideNow()"], "turnTide()", "tideNow"),
        ([wrong, "other()"], args["simulate"], args["watch"][0]),
    ):
        call = of(Exchange("qa_chain", args | {"named": named}, answer))
        assert call is not None
        assert (call.spoken, call.readings[0].function) == (spoken, view)
