"""Shrinking: a local minimum of the same defect, in few executions."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from sandbox.fuzz.port import Enough
from sandbox.fuzz.shrink import pieces, shrinker, split, stretches


def shrunk(source: bytes, shows: Callable[[bytes], bool], part: str = "compiler") -> tuple[bytes, int]:
    """The smallest input found, and the executions it took."""
    asked: list[bytes] = []

    def still(candidate: bytes) -> bool:
        asked.append(candidate)
        return shows(candidate)

    return shrinker(part)(source, still), len(asked)


PROGRAM = b"""const LIMIT: i32 = 10;
// a remark
fn helper(a: i32, b: i32) -> i32 { if a > b { a } else { b } }
fn frame(t: i32) -> i32 {
    let mut i = 0;
    while i < t { i += helper(i, LIMIT); }
    match i { 0 => -(if i > 4 { 12345 } else { helper(1, 2) }), _ => 3 }
}
"""


def test_a_program_shrinks_to_what_shows_the_defect_and_no_token_more() -> None:
    smallest, executions = shrunk(
        PROGRAM, lambda text: b"-(if" in text and text.count(b"{") == text.count(b"}")
    )
    assert smallest == b"-(if"
    assert executions < 150


def test_an_expression_becomes_a_literal_and_names_become_one_letter() -> None:
    body = re.compile(rb"fn\s[a-z]\w*\(\)\{\s*-(\d+|\w+|\w+\(.*\))\s*\}")

    def shows(text: bytes) -> bool:
        return bool(body.fullmatch(text.replace(b") {", b"){").strip()))

    smallest, _ = shrunk(b"fn frame() { -helper(1, LIMIT * (2 + 3)) }", shows)
    assert smallest == b"fn\na(){-0}"


def depth(text: bytes) -> int:
    level = most = 0
    for one in text:
        level += (one == 0x28) - (one == 0x29)
        most = max(most, level)
    return most


@pytest.mark.parametrize("balanced", [False, True])
def test_a_deep_nest_takes_tens_of_executions_and_keeps_a_margin(balanced: bool) -> None:
    def shows(text: bytes) -> bool:
        return depth(text) >= 5300 and (not balanced or text.count(b"(") == text.count(b")"))

    nest = b"fn frame(t: i32) -> i32 { " + b"(" * 20_000 + b"t" + b")" * 20_000 + b" }\n"
    smallest, executions = shrunk(nest, shows)
    assert set(smallest) == set(b"()" if balanced else b"(")
    assert executions < 300
    assert depth(smallest) == 5300 + 5300 // 8


def test_repetitions_that_differ_in_a_number_are_one_run() -> None:
    text = b"".join(b"let x%d = %d;\n" % (one, one) for one in range(2_000))
    assert len(stretches(text)) == 1
    smallest, executions = shrunk(text, lambda left: left.count(b"let") >= 40)
    assert smallest.count(b"let") == 40
    assert executions < 100


def test_tokens_join_to_the_same_text() -> None:
    for text in (PROGRAM, b'"a\\"b" \'c\' 0x1F 1.5e3 \xc3\xa9 /* open', b"", b"(" * 999):
        assert b"".join(split(text)) == b"".join(pieces(text)) == text
        assert b"".join(map(bytes, stretches(text))) == text


def test_what_is_left_is_valid_text() -> None:
    smallest, _ = shrunk("let s = 'é字'; // ü".encode(), lambda text: "字".encode() in text)
    assert smallest == "字".encode()


@pytest.mark.parametrize("part", ["compiler", "loader"])
def test_a_search_that_must_stop_gives_what_it_has(part: str) -> None:
    asked: list[bytes] = []

    def still(candidate: bytes) -> bool:
        asked.append(candidate)
        if len(asked) == 3:
            raise Enough
        return len(asked) == 2

    assert shrinker(part)(PROGRAM, still) == asked[1]


MODULE = bytes.fromhex("0061736d0100000001060160017f017f03020100070901056672616d6500000a0601040020000b")


def test_a_module_loses_sections_and_contents_with_its_lengths_right() -> None:
    """The export section stays, nearly empty, with a length that fits."""

    def shows(module: bytes) -> bool:
        at, names = 8, []
        while at + 1 < len(module):
            names.append(module[at])
            at += 2 + module[at + 1]
        return module[:8] == MODULE[:8] and at == len(module) and 7 in names and module[-1:] != b"\x07"

    smallest, executions = shrunk(MODULE, shows, "loader")
    assert smallest == MODULE[:8] + b"\x07\x00"
    assert executions < 300


def test_bytes_become_zero() -> None:
    smallest, _ = shrunk(b"\xff" * 40, lambda data: len(data) >= 4 and data[-1] > 9, "loader")
    assert smallest == b"\0\0\0\x0a"


def test_what_is_text_stays_text() -> None:
    asked: list[bytes] = []

    def still(candidate: bytes) -> bool:
        asked.append(candidate)
        return b"\xc3" in candidate

    assert shrinker("compiler")('x = "\u00e9"'.encode(), still) == b"\xc3\xa9"
    assert all(one.decode() is not None for one in asked)
