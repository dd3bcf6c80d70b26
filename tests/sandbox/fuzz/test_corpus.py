"""What a search keeps: the smallest input for each behaviour, within bounds, in an order that repeats."""

from __future__ import annotations

from random import Random

import pytest

from sandbox.fuzz import corpus as corpus_module
from sandbox.fuzz.corpus import LARGEST, Corpus, behaviours
from sandbox.fuzz.loop import DEFECT, FLOOR, Bandit
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.process import Ending
from sandbox.runners.port import Execution


def accepted(out: bytes = b"", covered: tuple[int, ...] = ()) -> Execution:
    return Execution(Ending.ACCEPTED, 0, out, b"", covered=frozenset(covered))


def test_behaviour_is_the_ending_its_message_what_was_made_and_what_was_passed() -> None:
    made = ExecutionVerdict("accepted", features=frozenset({"i32.add"}))
    assert behaviours(made, accepted(b"12345678", (7,))) == {"accepted  ", "size 4", "with i32.add", 7}
    refused = ExecutionVerdict("clean_error", "expected {name}", "parser")
    assert behaviours(refused, accepted(b"12345678")) == {"clean_error parser expected {name}"}


def test_only_new_behaviour_is_kept_and_a_smaller_input_takes_the_place_of_a_larger() -> None:
    corpus = Corpus()
    assert corpus.add(b"long one", ["a", "b"]) == 2
    assert corpus.add(b"another one", ["a"]) == 0
    assert corpus.add(b"long one", ["c"]) == 0  # it is there
    assert corpus.add(b"b", ["b"]) == 0
    assert sorted(corpus.valuable(1_000, 9)) == [b"b", b"long one"]
    assert corpus.add(b"ab", ["a", "b"]) == 0
    assert sorted(corpus.valuable(1_000, 9)) == [b"ab", b"b"]
    assert corpus.new == 1


def test_what_the_caller_gave_is_not_given_back() -> None:
    corpus = Corpus()
    corpus.add(b"known", ["a"], given=True)
    corpus.add(b"fresh", ["b"])
    assert (corpus.valuable(1_000, 9), corpus.new) == ([b"fresh"], 1)


def test_memory_and_what_leaves_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "MOST_BYTES", 100)
    corpus = Corpus()
    for one in range(50):
        corpus.add(b"%040d" % one, [one])
    assert len(corpus) == 2
    assert corpus.add(b"x" * (LARGEST + 1), ["large"]) == 0
    assert len(corpus.valuable(40, 9)) == 1
    assert len(corpus.valuable(100, 1)) == 1
    assert corpus.valuable(39, 9) == []


def test_a_pool_prefers_what_is_small_and_gave_something_and_repeats() -> None:
    corpus = Corpus()
    for one in range(20):
        corpus.add(bytes([65 + one]) * (1 + 400 * (one % 2)), [one])
    pool = corpus.pool(Random(1))
    drawn = [pool[at] for at in range(len(pool))]
    assert drawn == [corpus.pool(Random(1))[at] for at in range(len(pool))]
    assert sum(len(one) == 1 for one in drawn) > len(drawn) * 0.6
    best = next(one for one in pool.parents() if len(one.source) == 1)
    before = drawn.count(best.source)
    best.gave = best.used = 20
    again = corpus.pool(Random(1))
    assert sum(again[at] == best.source for at in range(len(again))) > 2 * before


def test_a_bandit_follows_the_yield_and_starves_none() -> None:
    bandit, chance = Bandit(("dry", "good", "rich")), Random(3)
    chosen = []
    for _ in range(600):
        chosen.append(bandit.choose(chance))
        bandit.reward(chosen[-1], {"good": 0.3, "rich": DEFECT}.get(chosen[-1], 0.0))
    counts = {name: chosen[300:].count(name) for name in ("dry", "good", "rich")}
    assert counts["rich"] > 150 > counts["good"] > 0
    assert counts["dry"] > 0
    assert min(bandit.shares()) >= FLOOR / 3
    assert sum(bandit.shares()) == pytest.approx(1)
