"""The table of strategies, and what holds of every one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from sandbox.fuzz.inputs import table
from sandbox.fuzz.inputs.material import MOST_BYTES
from sandbox.fuzz.inputs.table import seeds, strategies
from sandbox.fuzz.inputs.words import boundaries
from sandbox.programs.program import Program

FAMILIES = ("rust", "solidity", "vyper", "typescript", "wat", "c", "json", "generic")
LONG = ("rust", "solidity", "vyper", "typescript", "wat")
GRAMMAR = '{"start": "<s>", "rules": {"<s>": [["a"], ["(", "<s>", ")"]]}}'
PARTS = [*((family, "compiler") for family in FAMILIES), ("rust", "loader")]


def made(family: str, part: str, seed: int, times: int = 60) -> dict[str, list[bytes | None]]:
    program = Program(family=family)
    corpus = seeds(program, part)
    return {
        name: [source(corpus, chance) for chance in [Random(seed)] for _ in range(times)]
        for name, source in strategies(program, part, "").items()
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_seeds_are_distinct_texts(family: str) -> None:
    found = seeds(Program(family=family), "compiler")
    assert len(found) == len(table.programs(family)) == len(set(table.programs(family)))
    assert len(found) >= (60 if family in LONG else 25)
    assert all(one.decode() for one in found)


def test_the_sample_of_a_profile_comes_first_and_a_family_without_a_list_has_the_generic_one() -> None:
    found = seeds(Program(family="cobol", sample="MOVE 1 TO A"), "compiler")
    assert found == (b"MOVE 1 TO A", *table.programs("generic"))


@pytest.mark.parametrize(("family", "part"), PARTS)
def test_the_same_corpus_and_chance_give_the_same_inputs(family: str, part: str) -> None:
    assert made(family, part, 5, 20) == made(family, part, 5, 20) != made(family, part, 6, 20)


@pytest.mark.parametrize(("family", "part"), PARTS)
def test_every_strategy_makes_inputs_within_the_bound(family: str, part: str) -> None:
    for name, inputs in made(family, part, 1).items():
        found = [one for one in inputs if one is not None]
        assert len(found) > 20, name
        assert all(0 < len(one) <= MOST_BYTES for one in found), name
        assert len(set(found)) > 10, name
        if part == "compiler":
            assert all(one.decode() for one in found), name


@pytest.mark.parametrize("part", ["compiler", "loader"])
def test_a_corpus_with_nothing_in_it_is_no_error(part: str) -> None:
    for corpus in ((), (b"",), (b" ",), (b"\xff(",), (b")]}",)):
        for source in strategies(Program(family="rust"), part, "").values():
            chance = Random(1)
            for _ in range(30):
                source(corpus, chance)


def test_a_strategy_is_one_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def upper(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        return corpus[0].upper()

    monkeypatch.setitem(table.TEXT, "upper", lambda family, grammar: upper)
    assert strategies(Program(), "compiler", "")["upper"]((b"a",), Random(1)) == b"A"


def test_a_grammar_takes_the_place_of_what_is_learned() -> None:
    assert "learned" in strategies(Program(), "compiler", "")
    found = strategies(Program(), "compiler", GRAMMAR)
    assert "learned" not in found
    assert {found["grammar"]((), Random(n)) for n in range(20)} >= {b"a", b"(a)"}
    with pytest.raises(ValueError, match="no end is in reach"):
        strategies(Program(), "compiler", '{"start": "<s>", "rules": {"<s>": [["<s>"]]}}')


def test_boundaries_cover_the_widths_of_integers_and_characters() -> None:
    numbers = boundaries("number")
    for width in (8, 16, 32, 64, 128, 256):
        assert {str(2**width), str(2**width - 1)} <= set(numbers)
    assert {"0", "-1", "-2147483648", "-9223372036854775808", "1e309", "5e-324"} <= set(numbers)
    assert {"", "é", "🙂", "\\ud800"} <= set(boundaries("string"))
