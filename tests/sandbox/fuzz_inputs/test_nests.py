"""Constructs that stand in themselves, and lists that are longer."""

from __future__ import annotations

import re
from random import Random

from sandbox.fuzz.inputs.lists import lists
from sandbox.fuzz.inputs.nests import cycles, nests
from sandbox.fuzz.inputs.productions import read

TABLE = read(
    "start: f <s>\ns: <e>;\n    | { <s> }\ne: a\n    | (<e>)\n    | <e> + <e>\n    | if <e> { <s> }\n"
)


def test_a_cycle_is_the_shortest_way_back_from_each_place() -> None:
    ways = {
        name: {("".join(one), at, len(cycle)) for cycle in each for one, at in cycle[:1]}
        for name, each in cycles(TABLE).items()
    }
    assert ways == {
        "<s>": {("<e>;", 0, 2), ("{ <s> }", 1, 1)},
        "<e>": {
            ("(<e>)", 1, 1),
            ("<e> + <e>", 0, 1),
            ("<e> + <e>", 2, 1),
            ("if <e> { <s> }", 1, 1),
            ("if <e> { <s> }", 3, 2),
        },
    }


def test_every_construct_stands_in_itself_several_times_and_in_others() -> None:
    source, chance = nests(TABLE), Random(1)
    made = {(source((), chance) or b"").decode() for _ in range(700)}
    assert all(re.fullmatch(r"f [a+(){}; if]+", one) for one in made)
    for nest in ("{ { { ", "(((a", "if if if a", "if a { if a { if a {", "a + a + a + a", "{ (if "):
        assert any(nest in one for one in made), nest
    assert max(one.count("{ { ") for one in made) >= 8


def test_a_table_without_a_cycle_has_no_nests() -> None:
    assert nests(read("start: f <e>\ne: a\n    | b\n"))((), Random(1)) is None


def test_an_element_of_a_list_stands_more_often_told_apart_or_not() -> None:
    source = lists("c")
    made = {(source((b"f(a, 7); g();",), Random(seed)) or b"").decode() for seed in range(400)}
    plain = {re.sub(r"([(;,]|^) ?", r"\1", one) for one in made}
    assert {"f(a,a,a,7);g();", "f(a1,a0,a,7);g();", "f(a,7);f(a,7);g();", "f0(a,7);f(a,7);g();"} <= plain
    assert max(one.count("a,") for one in plain) > 10


def test_without_a_separator_there_is_no_list() -> None:
    assert lists("c")((b"f(a)",), Random(1)) is None
    assert lists("c")((), Random(1)) is None
