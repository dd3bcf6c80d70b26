"""Functions without a name as a pure thing: which of them are asked, and how a question is put together."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.drivers.explore.chain.diamond_map import DiamondMap
from fleet.drivers.explore.chain.unnamed import MOST_LIMITS, UnnamedFunctions
from fleet.oracles.chain.code_functions import spelled
from fleet.oracles.chain.interfaces import StatedFunction
from tests.drivers.simulating import asked, context

HOLDER, WHO, WHAT, GUARD, OPEN, ODD = "0x" + "a1" * 20, *(f"0x0000000{digit}" for digit in "abcde")
KEY = f"{1:064x}"


def known(**functions: tuple[str, str]) -> DiamondMap:
    made = DiamondMap()
    code = {
        selector: {"arguments": arguments, "mutability": mutability, "reads": []}
        for selector, (arguments, mutability) in functions.items()
    }
    facet = {"facet": "0x" + "fa" * 20, "code": "c0" * 8, "selectors": [*code], "functions": code}
    made.learn([facet])
    return made


CONTRACT = {
    WHO: ("uint256", "view"),
    WHAT: ("uint256", "view"),
    GUARD: ("uint256", "nonpayable"),
    OPEN: ("uint256,bool", "nonpayable"),
    ODD: ("uint256,(uint256,bytes)[]", "nonpayable"),
}


def answer(view: list[str], succeeded: bool, after: int) -> dict[str, Any]:
    before = [f"0x{HOLDER[2:]:0>64}" if one.startswith(WHO) else f"0x{7:064x}" for one in view]
    now = [f"0x{after:064x}" if one.startswith(WHAT) else was for one, was in zip(view, before, strict=True)]
    return {"ok": True, "succeeded": succeeded, "before": before, "after": now}


def test_a_word_that_reads_as_a_bool_is_tried_as_a_number_too() -> None:
    contract = known(**CONTRACT)
    contract.values[f"{WHO}({KEY})"] = f"0x{HOLDER[2:]:0>64}"
    unnamed = UnnamedFunctions(contract)
    (thing,) = unnamed.things()
    assert (thing.view, thing.key, thing.holder) == (WHO, KEY, HOLDER)
    asked = [one.steps[0].args for one in unnamed.calls(thing)]
    assert [(one["simulate"], one["sender"]) for one in asked] == [
        (selector, who) for selector in (GUARD, OPEN) for who in ("stranger", HOLDER)
    ]
    for args in asked:
        refused = args["simulate"] == GUARD and args["sender"] == "stranger"
        unnamed.learn(args, answer(args["watch"], not refused, 7 if refused else 1))
    (question,) = unnamed.held(thing)
    assert [one.args["simulate"] for one in question.steps] == [GUARD, GUARD, OPEN, OPEN]
    assert [one.args["types"] for one in question.steps[2:]] == [["uint256", "bool"], ["uint256", "uint256"]]


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (("uint256", "int8"), ("uint256", "uint8")),
        (("address[]", "bytes32"), ("address[]", "bytes32")),
        (("(uint256,bool)",), None),
        (("uint256[2]",), None),
        ((), ()),
    ],
)
def test_types_that_a_call_can_spell(kinds: tuple[str, ...], found: tuple[str, ...] | None) -> None:
    assert spelled(kinds) == found


def test_a_document_s_types_go_before_those_of_the_code() -> None:
    contract = known(**CONTRACT)
    contract.stated = {OPEN: StatedFunction("hoist(uint256,bytes32)"), GUARD: StatedFunction("x((uint256))")}
    assert contract.types(OPEN) == ("uint256", "bytes32")
    assert (contract.types(GUARD), contract.types(ODD)) == (("uint256",), None)
    assert contract.signature(ODD) == ""


def test_limits_are_few_and_texts_come_first() -> None:
    functions = {f"0x000001{number:02x}": ("uint256", "nonpayable") for number in range(30)}
    contract = known(**functions, **{"0x00000200": ("bytes", "view"), "0x00000201": ("", "pure")})
    contract.values["0x00000201"] = f"0x{80:064x}"
    asked = UnnamedFunctions(contract).limits()
    assert len(asked) == MOST_LIMITS
    assert [one.args.get("simulate") for one in asked[0].steps] == [None, *3 * ["0x00000200"]]


@pytest.mark.parametrize("named", [["turnTide"], ["f(a b)"], ["f()\n"], ["f()"] * 49])
def test_only_signatures_name_functions(named: list[str]) -> None:
    answer = asked(context("0x" + "11" * 20), {"simulate": "0x01020304", "named": named})
    assert (answer["ok"], answer["error_class"]) == (False, "bad_request")
