"""What a round does besides mutation: its seeds, growth, comparisons, and how much it may say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import count

import pytest
import wasmtime

from sandbox.fuzz import relate
from sandbox.fuzz.anomalies import SHRINK_SHARE
from sandbox.fuzz.inputs.spelling import surrounded
from sandbox.fuzz.loop import SURROUNDED, SURROUNDED_FIRST, SURROUNDED_SHARE, grown
from sandbox.fuzz.port import InputSource, Reproducer
from sandbox.fuzz.relate import Relation, relations
from sandbox.fuzz.trials import Trials
from sandbox.runners.port import Execution
from sandbox.tools.qa_fuzz import DEFECTS_BYTES, SOURCE_BYTES, _fitting
from tests.sandbox.fuzz.scripted import PROGRAM, ScriptedRunner, ended, endless, search

SEEDS = [b"seed %d" % one for one in range(30)]
SAMPLE = b"fn frame(t: i32) -> i32 { let a = t + 1; a }"
WASM = replace(PROGRAM, output="wasm", sample=SAMPLE.decode(), family="rust")


def constant(number: int) -> bytes:
    """A module whose entry returns it."""
    return bytes(
        wasmtime.wat2wasm(f'(module (func (export "frame") (param i32) (result i32) i32.const {number}))')
    )


def always(other: ScriptedRunner | None, printer: ScriptedRunner | None = None) -> list[Relation]:
    """Every comparison, of every input."""
    return [replace(one, rate=1.0) for one in relations(WASM, "compiler", other, printer)]


def test_seeds_that_a_round_does_not_reach_are_the_next_one_s() -> None:
    first, second = ScriptedRunner(lambda _: ended()), ScriptedRunner(lambda _: ended())
    one = search(first, executions=13)
    assert one.run([], SEEDS) == "executions"
    assert one.seeds_done == 10  # three were the sample
    two = search(second)
    two.run([], SEEDS[one.seeds_done :])
    assert [source for source, _ in (*first.limits, *second.limits) if source in SEEDS] == SEEDS
    assert two.seeds_done == 20


def test_with_a_corpus_every_second_input_is_a_seed() -> None:
    runner, names = ScriptedRunner(lambda _: ended()), iter(range(1_000))
    found = search(runner, strategy=lambda corpus, chance: b"made %d" % next(names), executions=14)
    found.run([b"given"], SEEDS)
    assert [source for source, _ in runner.limits][3:] == [
        b"given",
        *(word for one in range(5) for word in (b"made %d" % one, SEEDS[one])),
    ]


def test_a_seed_on_which_the_program_hangs_is_done() -> None:
    found = search(ScriptedRunner(lambda source: endless("") if source in SEEDS else ended()))
    found.run([], SEEDS[:3])
    assert found.seeds_done == 3


@pytest.mark.parametrize(("power", "kinds"), [(1, []), (2, ["hang"])])
def test_time_that_grows_faster_than_the_input_is_followed_until_it_does_not_end(
    power: int, kinds: list[str]
) -> None:
    trials = search(ScriptedRunner(lambda source: ended(0.002 * (len(source) / 16) ** power))).trials
    assert [verdict.kind for _, verdict, _ in grown(trials, b"x " * 16)] == kinds


def test_memory_that_grows_faster_than_the_input_is_followed_to_its_end() -> None:
    def greedy(source: bytes) -> Execution:
        peak = len(source) ** 2 << 10
        return ended(peak=peak) if peak < 512 << 20 else ended(code=101, err=b"MemoryError", peak=peak)

    trials = search(ScriptedRunner(greedy)).trials
    assert [verdict.kind for _, verdict, _ in grown(trials, b"(" * 64)] == ["memory"]


def test_a_program_that_must_behave_alike_and_does_not_is_a_defect_with_its_pair() -> None:
    runner = ScriptedRunner(lambda source: ended(out=constant(2 if b"zq" in source else 1)))
    found = search(runner, relations=always(None), program=WASM)
    found.run([], [SAMPLE + b" "])
    kinds = {one.verdict.kind for one in found.defects.values()}
    assert kinds == {"metamorphic"}
    for one in found.defects.values():
        assert b"zq" in one.variant
        assert b"zq" not in one.source


def test_a_variant_that_fails_by_itself_is_a_defect_without_a_pair() -> None:
    def does(source: bytes) -> Execution:
        return ended(code=101, err=b"panicked at name") if b"_zq" in source else ended(out=constant(1))

    found = search(ScriptedRunner(does), relations=always(None), program=WASM)
    found.run([], [SAMPLE + b" "])
    (one,) = found.defects.values()
    assert (one.verdict.kind, one.variant, b"_zq" in one.source) == ("panic", b"", True)


def test_a_form_of_variants_that_ends_at_a_limit_is_made_no_more() -> None:
    runner = ScriptedRunner(
        lambda source: endless("a.py:f") if b"_zqoo" in source else ended(out=constant(1))
    )
    found = search(runner, relations=always(None), known=["hang a.py:f"], program=WASM)
    found.run([], [SAMPLE + b" " * one for one in range(1, 6)])
    made = [source for source, _ in runner.limits]
    assert sum(b"_zqoo" in one for one in made) == 1
    assert sum(b"Zqa" in one for one in made) == 5


def test_inputs_that_the_caller_knows_are_not_compared_as_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relate, "AGAIN_RATE", 0.1)  # ten times as often: always
    inputs = [b"x" * 2**one for one in range(1, 13)]  # each output has a new size

    def again(given: Sequence[bytes], seeds: Sequence[bytes]) -> int:
        runner = ScriptedRunner(lambda source: ended(out=source))
        search(runner, relations=relations(PROGRAM, "compiler")).run(given, seeds)
        made = [source for source, _ in runner.limits]
        return sum(made.count(one) > 1 for one in inputs)

    assert again(inputs, []) < 5
    assert again([], inputs) == 12


def test_variants_with_the_same_output_are_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def behaviour(module: bytes) -> str:
        asked.append(module)
        return "alike"

    def after(number: int) -> list[bytes]:
        """Modules that are run when a variant becomes this constant, and the program itself 1."""
        asked.clear()
        runner = ScriptedRunner(lambda source: ended(out=constant(number if b"zq" in source else 1)))
        search(runner, relations=always(None)[1:], program=WASM).run([], [SAMPLE + b" "])
        return asked

    monkeypatch.setattr(relate, "behaviour", behaviour)
    assert after(1) == []
    assert after(2)[:2] == [constant(1), constant(2)]


def test_a_refused_program_with_a_new_message_is_tried_in_other_surroundings() -> None:
    def compiler(source: bytes) -> Execution:
        if b"bad" not in source:
            return ended()
        lost = any(mark in source.split(b"bad")[0] for mark in ("é".encode(), b"\t\t", b"\n\n", b"xx"))
        return ended(code=101, err=b"no such place") if lost else ended(code=1, err=b"bad word")

    runner = ScriptedRunner(compiler)
    found = search(runner, around=partial(surrounded, family="rust"))
    found.run([b"fn g() { bad }"], [])
    assert found.defects == {}  # what the caller knows was followed before
    for seed in range(5):
        found = search(runner, around=partial(surrounded, family="rust"))
        found.chance.seed(seed)
        found.run([], [b"fn f() { bad }"])
        if found.defects:
            break
    (defect,) = found.defects.values()
    assert (defect.origin, defect.verdict.said) == ("surroundings", "no such place")


def test_surroundings_have_a_share_of_all_executions() -> None:
    """Each input is refused with a message of its own."""
    words, around = count(1), partial(surrounded, family="rust")

    def compiler(source: bytes) -> Execution:
        return ended(code=1, err=bytes(97 + int(digit) for digit in str(source.count(b"!"))) + b" is wrong")

    runner = ScriptedRunner(compiler)
    found = search(
        runner, strategy=lambda corpus, chance: b"a" + b"!" * next(words), around=around, executions=600
    )
    found.run([], [b"a"])
    changed = sum(set(source) != {ord("a"), ord("!")} for source, _ in runner.limits[4:])
    most = SURROUNDED_FIRST + SURROUNDED_SHARE * found.trials.executions
    assert SURROUNDED_FIRST < changed <= most + SURROUNDED


@pytest.mark.parametrize(
    ("there", "order"),
    [
        ((), ["other"] * 4),
        (("loose",), ["loose", "other", "loose", "other"]),
        (("pairs",), ["pairs", "other", "pairs", "other"]),
        (("loose", "pairs"), ["loose", "pairs", "loose", "other"]),
    ],
)
def test_what_is_systematic_waits_for_no_luck(there: Sequence[str], order: list[str]) -> None:
    numbers = count()

    def source(name: str) -> InputSource:
        return lambda corpus, chance: b"%s %d" % (name.encode(), next(numbers))

    runner = ScriptedRunner(lambda source: ended())
    found = search(runner, executions=103)
    found.strategies = {name: source(name) for name in ("other", *there)}
    found.run([], [])
    assert [made.decode().split()[0] for made, _ in runner.limits[3:]] == order * 25


@pytest.mark.parametrize(("dear", "each"), [(1, 2), (4, 5)])
def test_the_loose_table_has_half_of_the_processor_time(dear: int, each: int) -> None:
    numbers = count()
    runner = ScriptedRunner(lambda source: ended(2**-8 * (dear if source.startswith(b"other") else 1)))
    found = search(runner, strategy=lambda corpus, chance: b"other %d" % next(numbers), executions=103)
    found.strategies = {**found.strategies, "loose": lambda corpus, chance: b"loose %d" % next(numbers)}
    found.run([], [])
    made = [source[:5] for source, _ in runner.limits[3:]]
    assert len(made) == 100
    assert made.count(b"loose") >= 100 - 100 // each
    assert 100 // each // 5 < made.count(b"other") <= 100 // each


def test_a_seed_is_not_before_the_loose_table() -> None:
    runner = ScriptedRunner(lambda source: ended(2**-8))
    found = search(runner, executions=9)
    found.strategies = {"loose": lambda corpus, chance: b"loose %d" % len(runner.limits)}
    found.run([], [b"one", b"two", b"three"])
    made = [source for source, _ in runner.limits[3:]]
    assert made == [b"loose 3", b"one", b"loose 5", b"two", b"loose 7", b"three"]


def compared(times: float) -> int:
    """How many of 400 programs are compared that take this many times as long as the sample."""
    numbers, asked = count(), list[bytes]()

    def look(trials: Trials, source: bytes, done: Execution) -> tuple[()]:
        asked.append(source)
        return ()

    runner = ScriptedRunner(lambda source: ended(0.04 * (1 if source == b"a" else times)))
    found = search(runner, strategy=lambda corpus, chance: b"x%d" % next(numbers), executions=403)
    found.relations = [Relation("again", 0.8, look)]
    found.run([], [])
    return len(asked)


def test_dear_programs_are_compared_less_often() -> None:
    assert compared(1.0) > 4 * compared(8.0) > 0


def test_shrinking_has_a_share_of_a_round_and_goes_on_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each execution takes a second of sixty."""

    def compiler(source: bytes) -> Execution:
        clock[0] += 1.0
        for mark, word in ((b"one @", b"alpha"), (b"two @", b"beta")):
            if mark in source:
                return ended(code=101, err=word)
        return ended()

    clock = [0.0]
    monkeypatch.setattr("sandbox.fuzz.trials.time.monotonic", lambda: clock[0])
    runner, names = ScriptedRunner(compiler), iter(range(1_000))
    found = search(runner, strategy=lambda corpus, chance: b"made %d" % next(names))
    long = b" ".join(b"%03d" % one for one in range(100))
    found.run([], [b"one @ " + long, b"two @ " + long])
    explored = sum(source.startswith(b"made") for source, _ in runner.limits)
    assert explored >= 60 * (1 - SHRINK_SHARE) - 12
    assert len(found.defects) == 2
    for one in found.defects.values():
        assert len(one.source) < len(one.first)
        assert not one.minimal
        assert one.spent > 0


def test_two_compilers_that_differ_are_a_defect() -> None:
    own = ScriptedRunner(lambda _: ended(out=constant(1)))
    other = ScriptedRunner(lambda _: ended(out=constant(2)))
    alike = ScriptedRunner(lambda _: ended(out=constant(1)))
    for one, expected in ((other, {"differential two compilers"}), (alike, set())):
        found = search(own, relations=always(one), program=WASM)
        found.run([], [SAMPLE + b" "])
        assert set(found.defects) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"one", set()),
        (b"like one", set()),
        (b"two", {"round-trip another output"}),
        (b"no", {"round-trip refused"}),
    ],
)
def test_an_output_that_is_printed_and_compiled_again_stays_what_it_was(
    text: bytes, expected: set[str]
) -> None:
    """Other bytes that behave alike are the same output."""
    outputs = {b"two": constant(2), b"like one": constant(1) + b"\0\2\1n"}

    def compiled(source: bytes) -> Execution:
        return ended(code=1, err=b"error") if source == b"no" else ended(out=outputs.get(source, constant(1)))

    relations = always(None, ScriptedRunner(lambda _: ended(out=text)))
    found = search(ScriptedRunner(compiled), relations=relations, program=WASM)
    found.run([], [SAMPLE + b" "])
    assert set(found.defects) == expected


def test_a_result_has_room_for_so_much_and_the_shortest_go_first() -> None:
    def defect(size: int, text: str = "a") -> Reproducer:
        return Reproducer(
            signature=f"panic {size}",
            kind="panic",
            said="",
            place="",
            source=text * size,
            variant=text * size,
        )

    small, control = defect(5), defect(SOURCE_BYTES // 4, "\0")
    large = [defect(SOURCE_BYTES - one) for one in range(15)]
    kept = _fitting([*large, control, small, defect(SOURCE_BYTES + 1)])
    assert sum(len(json.dumps(asdict(one))) for one in kept) <= DEFECTS_BYTES
    assert small in kept
    assert kept[:-1] == tuple(large[-len(kept) + 1 :])
