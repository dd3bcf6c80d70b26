"""A guest's one line is a stranger's: what it may not hold is refused before it is looked at closely."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.jail.model import End, Outcome
from fleet.runs.call.guest_protocol import MAX_VALUES, answer
from fleet.runs.call.replies import arguments
from sandbox.spec import PROTOCOL
from sandbox.tools import TOOLS


def said(result: str | dict[str, Any], tool: str = "qa_fetch") -> dict[str, Any]:
    """What becomes of a result line that says this."""
    text = result if isinstance(result, str) else json.dumps(result)
    line = f'{{"v": {PROTOCOL}, "result": {text}}}'.encode()
    return answer(TOOLS[tool], Outcome(end=End.EXITED, code=0, stdout=line, stderr=b"", seconds=1.0))


def nonsense(tool: str = "qa_fetch") -> dict[str, Any]:
    """A refusal by the reader, before the result's own type is asked."""
    error = f"the guest of {tool} returned garbage: ValueError"
    return {"ok": False, "latency_ms": 1000.0, "error": error, "error_class": "internal", "hint": ""}


def test_a_crowd_of_unknown_keys_is_refused_by_its_number() -> None:
    assert said({f"k{number}": 0 for number in range(90_000)}) == nonsense()
    assert said({"k": 0})["error"] == "the guest of qa_fetch returned garbage: ValidationError"


@pytest.mark.parametrize("inner", ["0", "[]", "{}", '""'])
def test_a_crowd_of_values_is_refused_wherever_it_is(inner: str) -> None:
    crowd = ",".join([inner] * MAX_VALUES)
    assert said(f'{{"ok": true, "latency_ms": 1, "value": [{crowd}]}}', "qa_chain") == nonsense("qa_chain")
    many = {f"x-{number}": "" for number in range(MAX_VALUES)}
    assert said({"ok": True, "latency_ms": 1, "headers": many}) == nonsense()


@pytest.mark.parametrize(
    "number", ["9" * 4_000, "-" + "9" * 79, "1e999", "-1e999", "NaN", "Infinity"], ids=lambda text: text[:9]
)
@pytest.mark.parametrize("key", ["value", "block", "latency_ms"])
def test_a_number_that_none_can_use_is_refused(number: str, key: str) -> None:
    assert said(f'{{"ok": true, "{key}": {number}}}', "qa_chain") == nonsense("qa_chain")


def test_the_largest_number_of_a_chain_and_a_full_page_pass() -> None:
    full = {"ok": True, "latency_ms": 1, "value": [2**256 - 1] * 2_000}
    assert said(full, "qa_chain")["value"] == [2**256 - 1] * 2_000


@pytest.mark.parametrize("value", [10**80, -(10**4_000), float("inf")], ids=["long", "longer", "inf"])
def test_a_driver_may_not_send_such_numbers_either(value: float) -> None:
    assert arguments({"n": [value]}) == "the arguments are not plain JSON: ValueError"
    assert arguments({"n": [2**256 - 1]}) == {"n": [2**256 - 1]}


DEFECT = {"signature": "panic x", "kind": "panic", "said": "x", "place": "", "source": "@"}


def searched(**changes: Any) -> dict[str, Any]:
    """A result line of a search with one defect."""
    return said({"ok": True, "latency_ms": 1, "defects": [DEFECT | changes]}, "qa_fuzz")


def test_a_search_gives_its_defects_as_plain_data() -> None:
    whole = DEFECT | {"variant": "", "size": 1, "from_size": 0, "seen": 1, "origin": "", "minimal": True}
    assert searched(size=1)["defects"] == [whole]


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "x" * (32 * 1024 + 1)},
        {"variant": "x" * (32 * 1024 + 1)},
        {"signature": "x" * 601},
        {"said": "x" * 301},
        {"origin": "x" * 301},
        {"source": 7},
        {"source": None},
        {"source": ["@"]},
        {"seen": "many"},
        {"size": 1.5},
        {"source": "\ud800"},
        {"place": {"a": 1}},
    ],
    ids=repr,
)
def test_a_defect_that_is_none_makes_the_result_garbage(changes: dict[str, Any]) -> None:
    answered = searched(**changes)
    assert (answered["ok"], answered["error_class"]) == (False, "internal")
    assert answered["error"].startswith("the guest of qa_fuzz returned garbage: ")


@pytest.mark.parametrize(
    "result",
    [
        {"defects": [DEFECT] * 17},
        {"defects": [{"kind": "panic"}]},
        {"defects": [[]]},
        {"defects": DEFECT},
        {"corpus": ["x"] * 513},
        {"corpus": [1]},
        {"runner": "x" * 301},
        {"executions": 10**90},
        {"unknown": 1},
    ],
    ids=lambda one: str(one)[:30],
)
def test_a_search_that_says_what_it_may_not_is_garbage(result: dict[str, Any]) -> None:
    answered = said({"ok": True, "latency_ms": 1} | result, "qa_fuzz")
    assert answered["error"].startswith("the guest of qa_fuzz returned garbage: ")


def test_bytes_that_are_no_text_are_garbage() -> None:
    line = b'{"v": 1, "result": {"ok": true, "runner": "\xff"}}'
    outcome = Outcome(end=End.EXITED, code=0, stdout=line, stderr=b"", seconds=1.0)
    assert answer(TOOLS["qa_fuzz"], outcome)["error_class"] == "internal"
