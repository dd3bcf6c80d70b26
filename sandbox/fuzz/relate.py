"""What only several executions show: an output that varies, that depends on names, or that grows too fast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sandbox.fuzz.relations import RELATIONS, variants
from sandbox.fuzz.trials import Trials
from sandbox.judging.behaviour import behaviour
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.process import Ending
from sandbox.programs.program import OutputKind, Program
from sandbox.runners.port import Execution, Runner

RATE = 1 / 30
"""The share of accepted inputs for which a comparison is made."""
AGAIN_RATE = 1 / 5
"""The same for what takes one execution, and no other program."""

MOST_DEAR = 1
"""Variants of one form that may end at a limit in one round; no more are made then."""
VARIANT_RATE = 1 / 15
"""As RATE, for each form of a program that must behave alike."""


class Broken(NamedTuple):
    """A verdict on a pair of executions, and the pair's second input; b"" when it is the first once more.
    With `alone`, its execution, the second input fails by itself, and no pair is needed to show it."""

    verdict: ExecutionVerdict
    variant: bytes = b""
    alone: Execution | None = None


Look = Callable[[Trials, bytes, Execution], Iterable[Broken]]
"""What is wrong when an accepted input, with its execution, is compared with others; as far as asked for."""


VARIES = ExecutionVerdict("non-determinism", "two runs of one input differ")
DIFFERS = ExecutionVerdict("differential", "two compilers")


@dataclass(frozen=True, slots=True)
class Relation:
    """One comparison, made for `rate` of all accepted inputs, until `only` is known: the one defect that it
    can show, "" for several."""

    name: str
    rate: float
    look: Look
    only: str = ""

    def broken(self, trials: Trials, source: bytes) -> Iterable[Broken]:
        """What the comparison shows of an input, executed anew; nothing of one that is not accepted."""
        verdict, done = trials.run(source)
        return self.look(trials, source, done) if verdict.kind == "accepted" else ()


def unsteady(second: Runner | None) -> Look:
    """The same input once more, by a second start of the program where there is one."""

    def look(trials: Trials, source: bytes, done: Execution) -> Sequence[Broken]:
        again = trials.by(second, source) if second else trials.run(source)[1]
        if again.ending is Ending.ACCEPTED and again.stdout != done.stdout:
            return (Broken(VARIES),)
        return ()

    return look


def unlike(form: int) -> Look:
    """A program that must behave alike, whatever the compiler; the same output is not executed."""
    dear = 0

    def look(trials: Trials, source: bytes, done: Execution) -> Iterator[Broken]:
        nonlocal dear
        made = variants(source.decode("utf-8", "replace"), (form,)) if dear < MOST_DEAR else ()
        for one in made:
            variant = one.source.encode()
            verdict, other = trials.run(variant)
            if not verdict.sound:
                dear += other.ending in (Ending.HANG, Ending.MEMORY)
                yield Broken(verdict, variant, other)
            if verdict.kind != "accepted" or other.stdout == done.stdout:
                continue
            own = behaviour(done.stdout)
            if own and (theirs := behaviour(other.stdout)) and theirs != own:
                yield Broken(metamorphic(one.relation), variant)

    return look


def metamorphic(relation: str) -> ExecutionVerdict:
    return ExecutionVerdict("metamorphic", relation)


def apart(other: Runner) -> Look:
    """The same program by another compiler of the language."""

    def look(trials: Trials, source: bytes, done: Execution) -> Sequence[Broken]:
        own = behaviour(done.stdout)
        theirs = trials.by(other, source) if own else None
        said = behaviour(theirs.stdout) if theirs and theirs.ending is Ending.ACCEPTED else ""
        return (Broken(DIFFERS),) if said and said != own else ()

    return look


def printed(printer: Runner) -> Look:
    """What the printer makes of the output, compiled again."""

    def look(trials: Trials, source: bytes, done: Execution) -> Sequence[Broken]:  # noqa: ARG001  as every relation
        text = trials.by(printer, done.stdout)
        if text.ending is not Ending.ACCEPTED:
            return ()
        verdict, again = trials.run(text.stdout)
        if verdict.kind == "clean_error":
            return (Broken(ExecutionVerdict("round-trip", "refused")),)
        if not verdict.sound:
            return (Broken(verdict, text.stdout, again),)
        if verdict.kind != "accepted" or again.stdout == done.stdout:
            return ()
        own = behaviour(done.stdout)
        same = own and own == behaviour(again.stdout)
        return () if same else (Broken(ExecutionVerdict("round-trip", "another output")),)

    return look


def relations(
    program: Program,
    part: str,
    other: Runner | None = None,
    printer: Runner | None = None,
    second: Runner | None = None,
) -> tuple[Relation, ...]:
    """The comparisons that fit a program: those of behaviour where its output can be run."""
    if part != "compiler":
        return ()
    found = [Relation("again", AGAIN_RATE, unsteady(second), VARIES.signature)]
    if printer is not None:
        found.append(Relation("printed", RATE, printed(printer)))
    if program.output == OutputKind.WASM.value:
        found += [
            Relation(name, VARIANT_RATE, unlike(form), metamorphic(name).signature)
            for form, (name, _) in enumerate(RELATIONS)
        ]
        if other is not None:
            found.append(Relation("other", RATE, apart(other), DIFFERS.signature))
    return tuple(found)
