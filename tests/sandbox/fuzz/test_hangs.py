"""Inputs on which a program does not end: found by place, sure, and never for most of a round."""

from __future__ import annotations

from dataclasses import replace

from sandbox.fuzz.anomalies import SLOW_EXECUTIONS
from sandbox.fuzz.loop import HUNG, KNOWN, Bandit
from sandbox.fuzz.trials import HURRY_CPU_S, LEAST_CPU_S, LEAST_SURE_S, PATIENCE, SLOW
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.process import Ending
from sandbox.runners.port import Execution
from tests.sandbox.fuzz.scripted import ScriptedRunner, ended, endless, search

SLOW_CPU_S = 0.4
"""More than the least limit, less than PATIENCE times it."""


def compiler(source: bytes) -> Execution:
    if b"!" in source:
        return endless("a.py:f")
    if b"?" in source:
        return endless("b.py:g")
    return ended(SLOW_CPU_S if b"~" in source else 0.001)


def at_a_limit(runner: ScriptedRunner, mark: bytes) -> list[float]:
    return [limit for source, limit in runner.limits if mark in source]


def test_each_place_is_one_defect_and_minimal() -> None:
    found = search(ScriptedRunner(compiler))
    found.run([], [b"a b ! c", b"a ? b", b"one ! more"])
    assert {name: one.source for name, one in found.defects.items()} == {
        "hang a.py:f": b"!",
        "hang b.py:g": b"?",
    }
    assert [one.seen for one in found.defects.values()] == [2, 1]


def test_what_is_merely_slow_is_repeated_with_patience_and_raises_the_limit_of_its_size() -> None:
    runner = ScriptedRunner(compiler)
    found = search(runner)
    slow = b"~" * 64
    found.run([], [slow])
    assert at_a_limit(runner, b"~")[:2] == [LEAST_CPU_S, PATIENCE * LEAST_CPU_S]
    assert (found.defects, found.anomalies.unstable, slow in found.corpus.valuable(999, 9)) == ({}, 0, True)
    assert found.trials.limit_s(64) > SLOW_CPU_S
    assert found.trials.limit_s(9) == LEAST_CPU_S


def test_one_execution_that_took_long_raises_no_limit() -> None:
    took = iter([0.001] * 3 + [0.05, 0.001, 0.05, 0.05])
    found = search(ScriptedRunner(lambda source: ended(next(took))))
    for source in (b"b" * 9, b"c" * 9, b"d" * 9):
        found.trials.run(source)
        assert found.trials.limit_s(9) == LEAST_CPU_S
    found.trials.run(b"e" * 9)  # two in a row
    assert found.trials.limit_s(9) == SLOW * 0.05


def test_inputs_that_hang_where_others_do_are_cut_at_the_low_limit() -> None:
    runner = ScriptedRunner(compiler)
    found = search(runner, known=["hang a.py:f"])
    found.run([], [b"%d !" % one for one in range(20)])
    assert at_a_limit(runner, b"!") == [LEAST_CPU_S] * 20
    assert found.defects == {}


def test_it_is_a_hang_only_after_much_more_time() -> None:
    def fickle(source: bytes) -> Execution:
        return ended(LEAST_SURE_S * 0.9) if b"!" in source else ended()

    runner = ScriptedRunner(fickle)
    found = search(runner)
    found.run([], [b"a !"])
    assert at_a_limit(runner, b"!") == [LEAST_CPU_S, PATIENCE * LEAST_CPU_S, LEAST_SURE_S]
    assert found.defects == {}


def test_a_shrink_of_a_hang_is_bounded_by_what_takes_long() -> None:
    runner = ScriptedRunner(lambda source: endless("a.py:f") if len(source) > 5 else ended())
    found = search(runner, executions=5_000)
    found.run([], [b" ".join(b"%03d" % one for one in range(900))])
    assert len([one for one, limit in runner.limits if limit == HURRY_CPU_S]) <= SLOW_EXECUTIONS + 40


def test_once_hangs_have_had_their_share_limits_are_short() -> None:
    found = search(ScriptedRunner(compiler))
    assert found.trials.limit_s(9) == LEAST_CPU_S
    found.trials.hang_s = 1.0
    assert found.trials.limit_s(9) == HURRY_CPU_S


def test_what_runs_out_of_memory_is_known_by_where_it_was_and_cut_early() -> None:
    """A hang elsewhere is still one."""

    def greedy(source: bytes) -> Execution:
        if b"!" in source:
            full = ended(SLOW_CPU_S, code=101, err=b"MemoryError", peak=512 << 20)
            return replace(full, ending=Ending.MEMORY, where="a.py:f")
        return compiler(source)

    runner = ScriptedRunner(greedy)
    found = search(runner)
    found.run([], [*(b"%d !" % one for one in range(20)), b"a ?"])
    assert {one.verdict.kind for one in found.defects.values()} == {"memory", "hang"}
    (memory,) = [one for one in found.defects.values() if one.verdict.kind == "memory"]
    assert (memory.source, memory.seen) == (b"!", 20)
    later = [limit for source, limit in runner.limits if source in {b"%d !" % one for one in range(1, 20)}]
    assert later == [LEAST_CPU_S] * 19 or max(later) <= LEAST_CPU_S


def test_while_something_else_is_shrunk_a_hang_is_cut_short_and_not_pursued() -> None:
    def panics(source: bytes) -> Execution:
        if b"@" in source:
            return ended(code=101, err=b"at sign")
        return endless("a.py:f") if b"(" in source else ended()

    runner = ScriptedRunner(panics)
    found = search(runner)
    found.run([], [b"( @ )"])
    assert set(found.defects) == {"panic at sign"}
    assert set(at_a_limit(runner, b"(")[3:]) <= {HURRY_CPU_S}


def test_what_ends_at_a_limit_where_others_do_counts_as_several_inputs() -> None:
    """Not where a program does not say where it was, nor any other defect that is known."""
    trials = search(ScriptedRunner(compiler), known=["panic a", "hang"]).trials
    trials.hangs |= {"hang a.py:f", "hang", "panic a"}
    seen = [
        ExecutionVerdict("hang", place="a.py:f"),
        ExecutionVerdict("hang", place="b.py:g"),
        ExecutionVerdict("hang"),
        ExecutionVerdict("panic", place="a"),
    ]
    assert [trials.price(one, 3) for one in seen] == [2, 1, 1, 1]
    trials.hang_s = 1.0
    assert [trials.price(one, 3) for one in seen] == [3, 1, 1, 1]


def test_an_execution_costs_as_many_samples_as_it_takes_time() -> None:
    slow = search(ScriptedRunner(lambda source: ended(0.064))).trials
    quick = search(ScriptedRunner(lambda source: ended(0.001))).trials
    assert [slow.cost(0.064 * times) for times in (0.01, 0.3, 1, 3, 9)] == [0.125, 0.25, 1, 2, 8]
    assert [quick.cost(one) for one in (0.0, 0.001, 0.03, 0.05)] == [1, 1, 1, 2]


def test_a_strategy_that_gives_what_is_known_or_hangs_is_chosen_less() -> None:
    bandit = Bandit(["fine", "hangs", "known"])
    for _ in range(50):
        bandit.reward("fine", 0.0)
        bandit.reward("known", KNOWN)
        bandit.reward("hangs", HUNG)
    fine, hangs, known = bandit.shares()
    assert fine > 2 * known > 2 * hangs


def test_a_parent_whose_children_hang_is_drawn_less() -> None:
    runner = ScriptedRunner(lambda source: endless("a.py:f") if b"!" in source else ended(out=source))
    names = iter(range(1_000))
    found = search(runner, strategy=lambda corpus, chance: corpus[0] + b"!%d" % next(names), executions=30)
    found.run([], [b"a"])
    parents = found.corpus.pool(found.chance)
    assert parents[0] == b"a"
    (parent,) = parents.parents()
    assert parent.used >= 10 * -HUNG
