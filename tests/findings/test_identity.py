"""Which two observations are one defect, and which are two: fingerprints of answers as tools give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fleet.findings.fingerprint import former, identity
from fleet.findings.repro import ReproCall
from fleet.findings.sighting import Sighting
from fleet.oracles.model import Exchange, Facts, Violation
from fleet.oracles.table import judge

Answered = tuple[str, Mapping[str, Any], Mapping[str, Any]]
FACTS = Facts(language="rustlite", promised={"call_price_wei": 5})
WASM = "0061736d01000000"
CRASH = {"outcome": "crash", "exit_code": -6, "kind": "crash", "said": "SIGABRT"}
LOST = {"outcome": "accepted", "valid": True, "kind": "missing-entry", "said": "exports none of frame"}


def load(module: str, **more: Any) -> Answered:
    return "qa_compile", {"module_hex": module}, CRASH | more


def compiled(source: str, result: Mapping[str, Any] = LOST, **more: Any) -> Answered:
    return "qa_compile", {"source": source}, {**result, **more}


def called(message: str = "hello there", *, charged: int, stream: bool = False, **more: Any) -> Answered:
    answer = {"ok": True, "status": 200, "reply": "x", "charged": charged}
    return "qa_call", {"target": "a", "message": message, "stream": stream}, answer | more


def seen(one: Answered) -> Violation:
    (found,) = judge([Exchange(*one)], FACTS)
    return found


def name(one: Answered) -> str:
    found = seen(one)
    return identity(found.surface, found.sighting, [ReproCall(one[0], dict(one[1]))])


MISSING = [
    compiled("const A: i32 = 1; fn frame(t: i32) -> i32 { t }"),
    compiled("const LONGER: i32 = 77 + 1;\n// struct\nfn frame(tick: i32) -> i32 { tick + 2 }"),
    compiled("struct S {} fn frame(t: i32) -> i32 { t }"),
    compiled("mod m { fn frame(t: i32) -> i32 { t } }"),
]
TWO: dict[str, Sequence[Answered]] = {
    "crashes of a loader without a word, by what the module has": [
        load(WASM + "0105" + "00" * 5),
        load(WASM + "0105" + "00" * 5 + "0302" + "0000"),
        load(WASM + "0b03" + "000000"),
        load("ffff"),
    ],
    "crashes by their signal": [
        load(WASM + "010100"),
        load(WASM + "010100", said="SIGSEGV", exit_code=-11),
    ],
    "crashes by what they say": [
        load(WASM + "010100", said="SIGABRT table out of bounds"),
        load(WASM + "010100", said="SIGABRT bad section"),
    ],
    "a charge made twice, and one that is too high": [
        called(charged=10),
        called(charged=7),
        called(charged=5, charged_again=9, status_again=200),
    ],
    "memory and time of different constructs": [
        compiled("fn f() { loop {} }", {"outcome": "hang", "kind": "hang"}),
        compiled("struct A {}", {"outcome": "hang", "kind": "hang"}),
        compiled("struct A {}", {"outcome": "memory", "exit_code": -9, "kind": "memory"}),
    ],
}
ONE: dict[str, Sequence[Answered]] = {
    "a loader's crash on other bytes of the same sections": [
        load(WASM + "0105" + "00" * 5),
        load(WASM + "0105" + "01" * 5),
        load("0x" + WASM + "0103" + "020202"),
    ],
    "a loader's crash on a section that is cut off, whatever its kind": [
        load(WASM + "00"),
        load(WASM + "07ff"),
    ],
    "a crash with a place, whatever shows it": [
        compiled("fn f() {}", CRASH, place="a.rs:walk < a.rs:go"),
        compiled("struct S {}", CRASH, place="a.rs:walk < a.rs:go"),
        compiled("fn f() {}", CRASH, place="a.rs:walk < a.rs:go", said="SIGSEGV"),
    ],
    "a missing entry of a compiler, whatever construct shows it": MISSING,
    "an output that does not validate, of other programs with the same words": [
        compiled("fn a() {}", LOST, kind="invalid-output", valid=False, said="type mismatch"),
        compiled("fn bcd() { 1 }", LOST, kind="invalid-output", valid=False, said="type mismatch"),
    ],
    "an input without end, in other words": [
        compiled("fn f() { g(1) }", {"outcome": "hang", "kind": "hang"}),
        compiled("fn other() { h(23) }", {"outcome": "hang", "kind": "hang"}),
    ],
    "a charge made twice, for other messages": [called(charged=10), called("good morning", charged=10)],
    "an overcharge of other sums": [called(charged=7), called("good morning", charged=8)],
    "an overcharge of a reply that is whole or streamed, beside a price of the document's or its own": [
        called(charged=7),
        called(charged=7, stream=True),
        called(charged=7, advertised_wei=5),
    ],
}


@pytest.mark.parametrize("what", TWO)
def test_these_are_different_defects(what: str) -> None:
    names = [name(one) for one in TWO[what]]
    assert len(set(names)) == len(names), names


@pytest.mark.parametrize("what", ONE)
def test_these_are_one_defect(what: str) -> None:
    assert len({name(one) for one in ONE[what]}) == 1, [seen(one).sighting.signature for one in ONE[what]]


@pytest.mark.parametrize(
    ("one", "signature", "whole"),
    [
        (
            ONE["a missing entry of a compiler, whatever construct shows it"][0],
            "missing-entry rustlite exports none of frame",
            True,
        ),
        (load(WASM + "010100"), "compiler-broken the loader crash rustlite SIGABRT", True),
        (called(charged=7), "overcharged sent once whole call_price_wei", True),
        (called(charged=7), "overcharged sent once whole call_price_wei more", True),
        (ONE["an input without end, in other words"][0], "compiler-endless the compiler", False),
    ],
)
def test_what_an_earlier_version_called_it_is_known_too(one: Answered, signature: str, whole: bool) -> None:
    found, calls = seen(one), [ReproCall(one[0], dict(one[1]))]
    older = identity(found.surface, Sighting("x", signature, whole=whole), calls)
    assert older in former(found.surface, found.sighting, calls)
    assert name(one) != older
