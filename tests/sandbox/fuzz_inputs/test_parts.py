"""Tokens, groups, statements, and the edits that keep a balanced program balanced."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.fuzz.inputs import edits, lines, structure, table
from sandbox.fuzz.inputs.material import Edit, Material, in_scope
from sandbox.fuzz.inputs.tokens import CLOSE, OPEN, PARTNERS, InputToken, statements, text, tokens

FAMILIES = ("rust", "solidity", "vyper", "typescript", "wat", "c", "json", "generic")
BALANCED = structure.GROUP_EDITS + tuple(
    one for one in structure.STATEMENT_EDITS if one is not structure.statement_wrapped
)


def balanced(parts: list[InputToken]) -> bool:
    waiting: list[str] = []
    for one in parts:
        if one.kind == OPEN:
            waiting.append(PARTNERS[one.text])
        elif one.kind == CLOSE and (not waiting or waiting.pop() != one.text):
            return False
    return not waiting


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_join_to_the_text_that_they_are_of(family: str) -> None:
    for program in table.programs(family):
        assert text(tokens(program, family)) == program


@given(st.text(), st.sampled_from(FAMILIES))
@settings(max_examples=80, deadline=None, database=None)
def test_tokens_of_any_text_join_to_it(source: str, family: str) -> None:
    assert text(tokens(source.encode("utf-8", "replace"), family)) == source.encode("utf-8", "replace")


def cut(source: str, family: str) -> list[tuple[str, str]]:
    parts = tokens(source.encode(), family)
    return [
        (one.kind, text(parts[one.start : one.end]).decode().strip()) for one in statements(parts, family)
    ]


def test_statements_of_blocks_of_lines_and_of_lists() -> None:
    assert cut("fn f() { let a = 1; if b { c } else { d } e }", "rust") == [
        ("inside", "let a = 1;"),
        ("value", "c"),
        ("value", "d"),
        ("inside", "if b { c } else { d }"),
        ("value", "e"),
        ("top", "fn f() { let a = 1; if b { c } else { d } e }"),
    ]
    assert cut("def f():\n    a = [1,\n2]\n    if b:\n        c\nx = 1", "vyper") == [
        ("inside", "a = [1,\n2]"),
        ("inside", "c"),
        ("inside", "if b:\n        c"),
        ("top", "def f():\n    a = [1,\n2]\n    if b:\n        c"),
        ("top", "x = 1"),
    ]
    assert cut("(module (func (i32.add (nop))))", "wat") == [
        ("inside", "(nop)"),
        ("inside", "(i32.add (nop))"),
        ("func", "(func (i32.add (nop)))"),
        ("module", "(module (func (i32.add (nop))))"),
    ]


@given(st.integers(0, 10**9), st.sampled_from(FAMILIES), st.sampled_from(BALANCED))
@settings(max_examples=80, deadline=None, database=None)
def test_edits_of_groups_and_statements_keep_the_balance(seed: int, family: str, edit: Edit) -> None:
    corpus = [one for one in table.programs(family) if balanced(list(tokens(one, family)))]
    chance = Random(seed)
    parts = list(tokens(corpus[seed % len(corpus)], family))
    edit(parts, Material(corpus, family), chance)
    assert balanced(parts)
    again = list(tokens(text(parts), family))
    assert balanced(again)


def test_names_become_names_in_scope_by_what_they_are() -> None:
    parts, donor = (tokens(one, "rust") for one in (b"f(a); f(a + 1);", b"let q = g(q, 2);"))
    material = Material((b"",), "rust")
    assert text(in_scope(donor, parts, material, Random(1))) == b"let a = f(a, 2);"


def after(edit: Edit, source: str, seeds: int, family: str = "rust") -> set[str]:
    made = set()
    for seed in range(seeds):
        parts = list(tokens(source.encode(), family))
        edit(parts, Material((source.encode(),), family), Random(seed))
        made.add(text(parts).decode())
    return made


def test_an_operator_becomes_one_of_its_class_and_a_literal_one_at_an_edge() -> None:
    assert after(edits.operator, "a < b", 60) == {f"a {one} b" for one in ["<", ">", "<=", ">=", "==", "!="]}
    assert {"18446744073709551616", "0x80000000i64", "-1"} <= after(edits.boundary, "5i64", 900)
    assert {'"漢字"', '""'} <= after(edits.boundary, '"abc"', 900)


def test_an_expression_is_wrapped_whole() -> None:
    found = after(edits.wrap, "x = f(1, 2)[3] + 4", 2000)
    assert {"x = -{ f(1, 2)[3] } + 4", "x = (f(1, 2)[3] + 4 as i64)"} <= found


def test_a_block_of_lines_moves_to_the_depth_of_its_new_place() -> None:
    source = "def f():\n    if a:\n        b\nx"
    taken: set[str] = set()
    for seed in range(200):
        made = source.split("\n")
        lines.taken(made, (source.encode(),), Random(seed))
        taken.add("\n".join(made))
    assert "def f():\n    if a:\n        if a:\n            b\n        b\nx" in taken
