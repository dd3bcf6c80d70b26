"""One round on one program: its runners, inputs and relations put together, and searched."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from functools import partial
from random import Random

from sandbox.fuzz.anomalies import Anomalies, Found
from sandbox.fuzz.inputs.inside import odd_strings
from sandbox.fuzz.inputs.rates import AlternativeRates
from sandbox.fuzz.inputs.spelling import surrounded
from sandbox.fuzz.inputs.table import seeds, strategies
from sandbox.fuzz.loop import Search
from sandbox.fuzz.novelty import TextNovelty
from sandbox.fuzz.port import WORDS, Reproducer
from sandbox.fuzz.relate import relations
from sandbox.fuzz.shrink import shrinker
from sandbox.fuzz.trials import Bounds, Trials
from sandbox.judging.verdict import judge
from sandbox.programs.program import EMPTY_MODULE, Program
from sandbox.runners.choice import another_start, runner
from sandbox.text import clean


def searched(  # noqa: PLR0913  the bounds of a round
    program: Program,
    part: str,
    seconds: float,
    within_s: float,
    executions: int,
    *,
    seed: int,
    known: frozenset[str],
    grammar: str,
    given: Sequence[bytes],
    seeds_done: int,
) -> tuple[Search, str, str]:
    """The search when its round is over, why it is over (ROUND_ENDS), and the name of its runner.

    The round ends after `seconds` or `executions`, and `within_s` of now, starts included; `given` is the
    corpus to start from, `known` are the signatures to leave aside, `seeds_done` counts the suspicious
    programs of earlier rounds.
    """
    text, began = part == "compiler", time.monotonic()
    with contextlib.ExitStack() as stack:
        runs = stack.enter_context(contextlib.closing(runner(program, part)))
        beside = {
            other: stack.enter_context(contextlib.closing(runner(program, other)))
            for other, words in (("other", program.other), ("printer", program.printer))
            if words and text
        }
        if text and (second := another_start(program, runs)) is not None:
            beside["second"] = stack.enter_context(contextlib.closing(second))
        left_s = max(within_s - (time.monotonic() - began), 1.0)
        trials = Trials(program, part, runs, judge, Bounds(min(seconds, left_s), executions))
        trials.calibrate(program.sample.encode() if text else EMPTY_MODULE)
        rates = AlternativeRates()
        search = Search(
            trials=trials,
            anomalies=Anomalies(trials, shrinker(part), known),
            strategies=strategies(program, part, grammar, rates, seed),
            relations=relations(program, part, **beside),
            chance=Random(seed),
            rates=rates,
            novelty=TextNovelty(program.family) if text else None,
            around=partial(surrounded, family=program.family) if text else None,
        )
        starts = seeds(program, part)
        if text:
            starts = (*starts, *odd_strings(starts, program.family))
        stopped = search.run(given, starts[seeds_done:])
        return search, stopped, runs.name


def reproducer(part: str, found: Found) -> Reproducer:
    """A defect as it leaves the jail: its texts clipped to WORDS characters."""
    verdict = found.verdict
    return Reproducer(
        signature=clean(verdict.signature, 2 * WORDS),
        kind=verdict.kind,
        said=clean(verdict.said, WORDS),
        place=clean(verdict.place, WORDS),
        source=written(part, found.source),
        variant=written(part, found.variant),
        size=len(found.source),
        from_size=len(found.first),
        seen=found.seen,
        origin=clean(found.origin, WORDS),
        minimal=found.minimal,
    )


def written(part: str, source: bytes) -> str:
    """An input as a result shows it: text of a compiler, hex of a loader."""
    return source.decode("utf-8", "replace") if part == "compiler" else source.hex()
