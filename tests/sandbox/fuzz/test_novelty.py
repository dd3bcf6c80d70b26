"""Texts with something new in them, and texts that would show only what is known."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from sandbox.fuzz.loop import Bandit
from sandbox.fuzz.novelty import SURE, TextNovelty
from sandbox.runners.port import Execution
from tests.sandbox.fuzz.scripted import ScriptedRunner, ended, endless, search


def test_names_are_alike_and_constructs_counts_and_lengths_are_not() -> None:
    seen = TextNovelty("rust")
    assert seen.add(b"fn a() { b + 1 }")
    assert not seen.add(b"fn longer() { other + 1 }")
    for new in (
        b"fn a() { b - 1 }",
        b"fn a() { b + 2 }",
        b"fn a() { b + 1; b + 1; b + 1 }",
        b'fn a() { "b" + 1 }',
    ):
        assert seen.add(new)
        assert not seen.add(new)


def test_what_only_inputs_with_a_known_defect_have_is_suspected_and_nothing_else_in_them() -> None:
    seen = TextNovelty("rust")
    seen.add(b"fn a() { b + 1; c }")
    seen.add(b"fn a() { -c }")
    for number in range(SURE):
        assert not seen.suspect(b"fn a() { b + 700 }")
        seen.accuse(b"fn a() { b + 700; %s }" % (b"c", b"-c", b"!c")[number])
    assert seen.suspect(b"fn a() { 700 }")
    assert not seen.suspect(b"fn a() { b + 1; -c }")
    seen.accuse(b"fn a() { b + 700; c[0] }")
    seen.accuse(b"fn a() { b + 700; c[0] }")
    seen.accuse(b"fn a() { b + 700; c[0] }")
    assert not seen.suspect(b"fn a() { c[0] }")


def test_one_sound_input_clears_what_it_has() -> None:
    seen = TextNovelty("rust")
    for _ in range(SURE):
        seen.accuse(b"f(700)")
    seen.add(b"f(700)")
    assert not seen.suspect(b"f(700)")


def test_inputs_that_would_hang_as_others_did_are_mostly_left_out() -> None:
    def compiler(source: bytes) -> Execution:
        return endless("a.py:f") if b"700" in source else ended()

    made = iter(range(400))

    def strategy(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        number = next(made, None)
        return None if number is None else b"f(%d, %d)" % (number % 2 * 700, number)

    hit = ScriptedRunner(compiler)
    found = search(hit, strategy=strategy, executions=5_000)
    found.novelty = TextNovelty("rust")
    found.run([], [])
    made_so = {source for source, _ in hit.limits if source.startswith(b"f(700, ") and source.endswith(b")")}
    assert len(made_so) < 100
    assert set(found.defects) == {"hang a.py:f"}


def test_a_strategy_is_chosen_by_what_it_gives_for_its_time() -> None:
    bandit = Bandit(["cheap", "dear", "usual"])
    for _ in range(100):
        bandit.reward("cheap", 0.25, cost=0.25)
        bandit.reward("dear", 0.25, cost=16.0)
        bandit.reward("usual", 0.25)
    cheap, dear, usual = bandit.shares()
    assert sum((cheap, dear, usual)) == pytest.approx(1.0)
    assert cheap > 3 * usual > 30 * dear > 0.0


def test_a_strategy_with_large_inputs_is_chosen_less() -> None:
    bandit = Bandit(["large", "small"])
    for _ in range(100):
        bandit.reward("large", 0.25, 131_072)
        bandit.reward("small", 0.25, 64)
    large, small = bandit.shares()
    assert small > 3 * large
