"""Oracles of compilers: one defect has one signature, and pairs are checked on the trusted side."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts, Violation

FACTS = Facts(language="rustlite")
STEP = "fn frame(t: i32) -> i32 { let step = 2; t * step }"
RENAMED = STEP.replace("step", "zq0")


def judged(*calls: tuple[dict[str, Any], dict[str, Any]]) -> tuple[Violation, ...]:
    return table.judge([Exchange("qa_compile", args, result) for args, result in calls], FACTS)


def compiled(behaviour: str, **more: Any) -> dict[str, Any]:
    return {"outcome": "accepted", "kind": "accepted", "valid": True, "behaviour": behaviour} | more


@pytest.mark.parametrize(
    ("result", "oracle", "signature", "title"),
    [
        (
            {
                "outcome": "panic",
                "exit_code": 101,
                "kind": "panic",
                "place": "a.rs: byte {n}",
                "error": "x",
            },
            "compiler-broken",
            "compiler-broken the compiler panic rustlite a.rs: byte {n}",
            "the compiler ends in a panic (status 101): x",
        ),
        (
            {"outcome": "panic", "exit_code": 2, "kind": "panic", "said": "bad {n}", "error": "bad 7"},
            "compiler-broken",
            "compiler-broken the compiler panic rustlite bad {n}",
            "the compiler ends in a panic (status 2): bad 7",
        ),
        (
            {
                "outcome": "clean_error",
                "exit_code": 1,
                "kind": "internal-error",
                "place": "a:f",
                "error": "E",
            },
            "compiler-internal-error",
            "compiler-internal-error the compiler rustlite a:f",
            "the compiler, status 1: E",
        ),
        (
            {"outcome": "accepted", "exit_code": 0, "kind": "internal-error", "valid": False, "said": "leak"},
            "compiler-internal-error",
            "compiler-internal-error the compiler rustlite leak",
            "the compiler, status 0: leak",
        ),
        (
            {"outcome": "memory", "exit_code": -9, "kind": "memory"},
            "compiler-memory",
            "compiler-memory the compiler rustlite of fn let",
            "the compiler runs out of memory on 50 bytes",
        ),
        (
            {
                "outcome": "accepted",
                "valid": False,
                "kind": "invalid-output",
                "said": "bad type",
                "size": 3,
            },
            "module-invalid",
            "module-invalid rustlite bad type of fn let",
            "the compiler's output of 3 bytes does not validate: bad type",
        ),
        (
            {"outcome": "accepted", "valid": True, "kind": "missing-entry", "said": "exports none of frame"},
            "missing-entry",
            "missing-entry rustlite exports none of frame of fn let",
            "the compiler's module exports none of frame",
        ),
    ],
)
def test_a_defect_is_named_by_its_place_or_its_message(
    result: dict[str, Any], oracle: str, signature: str, title: str
) -> None:
    (found,) = judged(({"source": STEP}, result))
    assert (found.oracle, found.sighting.signature, found.sighting.title) == (oracle, signature, title)


NESTED = 400
EXPRESSIONS = (
    "fn f() -> i32 { return " + "(" * NESTED + "1" + ")" * NESTED + "; }",
    "static X: u8 = " + "(" * NESTED + "7" + ")" * NESTED + ";",
    'let mut long = "text"; while true { long = ' + "( " * NESTED,
)
BLOCKS = ("fn f() " + "{" * NESTED + "}" * NESTED, "impl A { pub fn g(self) { if a " + "{ " * NESTED)
SILENT: tuple[dict[str, Any], ...] = (
    {"outcome": "crash", "exit_code": -11, "kind": "crash", "said": "SIGSEGV"},
    {
        "outcome": "crash",
        "exit_code": -6,
        "kind": "crash",
        "said": "SIGABRT thread {text} has overflowed its stack",
    },
    {
        "outcome": "clean_error",
        "exit_code": 1,
        "kind": "internal-error",
        "said": "RecursionError: maximum recursion depth exceeded",
    },
)


@pytest.mark.parametrize("result", SILENT)
def test_a_recursion_without_a_trace_is_named_by_what_its_input_repeats(result: dict[str, Any]) -> None:
    names = [
        {judged(({"source": source}, result))[0].sighting.signature for source in sources}
        for sources in (EXPRESSIONS, BLOCKS)
    ]
    assert [len(each) for each in names] == [1, 1]
    assert names[0] != names[1]


def test_a_recursion_is_still_found_under_the_name_it_had() -> None:
    result = {"outcome": "clean_error", "kind": "internal-error", "place": "a:f < b:g < c:h < d:i recursion"}
    (found,) = judged(({"source": STEP}, result))
    key = "compiler-internal-error the compiler rustlite a:f < b:g < c:h"
    assert found.sighting.signature == f"{key} < d:i recursion"
    assert found.sighting.former == ((key, True),)


@pytest.mark.parametrize(
    "result",
    [
        {"outcome": "unknown", "kind": "unknown", "error_class": "busy"},
        {"outcome": "clean_error", "kind": "clean_error", "error": "Internal compiler error"},
        {"outcome": "accepted", "kind": "accepted", "valid": True},
        {},
    ],
)
def test_other_answers_say_nothing(result: dict[str, Any]) -> None:
    assert judged(({"source": STEP}, result)) == ()


def test_a_large_input_may_use_up_the_memory() -> None:
    assert judged(({"source": "x" * 65_536}, {"outcome": "memory", "kind": "memory"})) == ()


def test_a_pair_that_is_not_related_says_nothing_whoever_says_so() -> None:
    one, other = compiled("aa"), compiled("bb")
    (found,) = judged(({"source": STEP}, one), ({"source": RENAMED}, other))
    assert (found.oracle, found.led) == ("compiler-metamorphic", (0,))
    assert found.sighting.signature == "compiler-metamorphic renamed locals rustlite"
    assert judged(({"source": STEP}, one), ({"source": STEP.replace("2", "3")}, other)) == ()
    assert judged(({"source": STEP}, one), ({"source": RENAMED}, one)) == ()
    assert judged(({"source": STEP}, one), ({"source": RENAMED}, compiled(""))) == ()
    refused = {"outcome": "clean_error", "kind": "clean_error"}
    assert judged(({"source": STEP}, one), ({"source": RENAMED}, refused)) == ()


def test_two_compilers_that_disagree_on_acceptance_are_no_finding() -> None:
    refused = {"outcome": "clean_error", "kind": "clean_error", "exit_code": 1}
    asked = {"source": STEP, "other": True}
    assert judged(({"source": STEP}, compiled("aa")), (asked, refused)) == ()
    (found,) = judged(({"source": STEP}, compiled("aa")), (asked, compiled("bb")))
    assert found.oracle == "compiler-differential"
    assert judged(({"source": STEP}, compiled("aa")), (asked | {"source": RENAMED}, compiled("bb"))) == ()


def test_what_is_printed_is_compared_with_the_compilers_own_output_only() -> None:
    asked, one = {"source": STEP, "printed": True}, compiled("aa", sha256="01")
    refused = {"outcome": "clean_error", "kind": "clean_error", "exit_code": 1}
    (found,) = judged(({"source": STEP}, one), (asked, refused))
    assert found.sighting.title == "the compiler's printed source is refused"
    (found,) = judged(({"source": STEP}, one), (asked, compiled("bb", sha256="02")))
    assert found.sighting.title.endswith("compiles to another output")
    for last in (one, compiled("aa", sha256="02"), {"outcome": "unknown", "kind": "accepted"}):
        assert judged(({"source": STEP}, one), (asked, last)) == ()
    for first in ({"source": RENAMED}, {"source": STEP, "other": True}, asked):
        assert judged((first, one), (asked, refused)) == ()
    assert judged(({"source": STEP}, refused), (asked, refused)) == ()


def test_two_outputs_of_one_call_are_compared_and_of_two_compilers_are_not() -> None:
    one, other = compiled("aa", sha256="01"), compiled("aa", sha256="02")
    (found,) = judged(({"source": STEP}, one), ({"source": STEP}, other))
    assert (found.oracle, found.led) == ("compiler-nondeterministic", (0,))
    assert judged(({"source": STEP}, one), ({"source": STEP, "other": True}, other)) == ()
    assert judged(({"source": STEP}, one), ({"source": RENAMED}, other)) == ()
