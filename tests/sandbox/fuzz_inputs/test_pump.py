"""The pump repeats a part in a row or inside itself, within a bound."""

from __future__ import annotations

import re
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES
from sandbox.fuzz.inputs.pump import MOST_TIMES, pump, repeated, times
from sandbox.fuzz.inputs.tokens import tokens


def test_a_part_stands_in_a_row_or_around_its_middle() -> None:
    parts = tokens(b"f((x))", "rust")
    assert repeated(parts, (1, 2, 5, 6), 3, "rust") == b"f( ( ( (x)) ) ) "
    assert repeated(parts, (3, 4, 4, 4), 3, "rust") == b"f((x x x ))"
    lines = tokens(b"def f():\n    a\n    b", "vyper")
    assert repeated(lines, (6, 7, 7, 7), 2, "vyper") == b"def f():\n    a\n    a\n    \n    b"


def test_a_part_is_repeated_as_often_as_the_bound_allows() -> None:
    parts = tokens(b"f(x)", "rust")
    made = repeated(parts, (2, 3, 3, 3), 10**9, "rust")
    assert MOST_BYTES - 2 <= len(made) <= MOST_BYTES
    assert made.count(b"x") == (MOST_BYTES - 3) // 2


def test_counts_are_small_first_and_reach_the_bound() -> None:
    found = sorted(times(Random(seed)) for seed in range(2000))
    assert found[0] == 2
    assert MOST_TIMES * 0.8 < found[-1] <= MOST_TIMES
    assert 20 < found[1000] < 60
    assert {2**power + more for power in range(2, 10) for more in (0, 1)} <= set(found)


def test_inputs_are_long_and_short_nested_and_flat() -> None:
    source, chance = pump("rust"), Random(1)
    corpus = (b"fn f(t: i32) -> i32 { let x = (t + (1)); x }",)
    made = [one for _ in range(400) if (one := source(corpus, chance)) is not None]
    assert max(map(len, made)) > 40_000 > 200 > min(map(len, made))
    assert any(one.count(b"-") > 50 for one in made)
    assert any(one.count(b"(t + ") > 50 for one in made)
    assert any(one.count(b"let x = ") > 50 for one in made)


def made_of(source: bytes, family: str = "rust") -> list[str]:
    chance = Random(2)
    return [(pump(family)((source,), chance) or b"").decode() for _ in range(3000)]


def test_definitions_and_parameters_get_names_of_their_own() -> None:
    made = made_of(b"fn f(a: i32, b: i32) { }")
    assert any("fn f0(a: i32, b: i32) { } fn f1(a: i32, b: i32) { } " in one for one in made)
    assert any("(a0: i32,a1: i32,a2: i32," in one for one in made)
    lines = made_of(b"def f():\n    a\n", "vyper")
    assert any("def f0():\n    a\ndef f1():\n    a\n" in one for one in lines)


def test_elements_operands_names_and_texts_get_long_and_many() -> None:
    made = made_of(b'fn f(a: i32) { match a { 1 => 2, 3 | 4 => g("x", 7), _ => a + 1 } }')
    for part, least in (("1 => 2,", 65), ("| 4", 65), ("+ 1", 65)):
        assert any(one.count(part) >= least for one in made), part
    for form in (r"fn f(a{64,})\(", r"\"a{64,}|\"x?a{64,}", r"0{64,}7"):
        assert any(re.search(form, one) for one in made), form
