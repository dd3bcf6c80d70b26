"""What becomes of one input when it is changed in a direction: repeats are doubled for as long as they cost
more time or memory than they should; a refused one is put into other surroundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from sandbox.fuzz.corpus import LARGEST
from sandbox.fuzz.shrink import Run, joined, stretches
from sandbox.fuzz.trials import Trials
from sandbox.judging.port import ExecutionVerdict
from sandbox.runners.port import Execution

FASTER = 3.0
"""Growth per doubling from which on it is faster than linear (2), with room for noise."""
FLOOR_CPU_S, FLOOR_PEAK = 0.05, 32 << 20
"""Costs below which growth says nothing."""
SURROUNDED = 4
"""Surroundings in which an input is tried."""

Changed = Iterator[tuple[bytes, ExecutionVerdict, Execution]]
"""Every changed input that is not sound."""


def elsewhere(
    trials: Trials, source: bytes, around: Callable[[bytes, Random], bytes | None], chance: Random
) -> Changed:
    """A refused input in a few surroundings (sandbox/fuzz/inputs/surroundings.py)."""
    for _ in range(SURROUNDED):
        if made := around(source, chance):
            verdict, done = trials.run(made)
            if not verdict.sound:
                yield made, verdict, done


def grown(trials: Trials, source: bytes) -> Changed:
    """An accepted input as its longest run is doubled."""
    parts, costs = stretches(source), list[Execution]()
    runs = [at for at, one in enumerate(parts) if isinstance(one, Run)]
    if not runs:
        return
    while len(longer := joined(parts)) <= LARGEST:
        verdict, done = trials.run(longer)
        if not verdict.sound:
            yield longer, verdict, done
            return
        costs.append(done)
        if verdict.kind != "accepted" or (len(costs) > 2 and not _faster(*costs[-3:])):
            return
        # the parts with the longest run twice as long, and every other of its length: halves of one nest
        found = {at: one for at in runs if isinstance(one := parts[at], Run)}
        most = max(len(one.units) for one in found.values())
        twice = {at: replace(one, units=one.units * 2) for at, one in found.items() if len(one.units) == most}
        parts = [twice.get(at, one) for at, one in enumerate(parts)]


def _faster(one: Execution, two: Execution, four: Execution) -> bool:
    """Whether the second step up is more than FASTER times the first, of memory or of time."""
    peak = four.peak >= FLOOR_PEAK and four.peak - two.peak >= FASTER * max(two.peak - one.peak, 1)
    cpu = four.cpu_s >= FLOOR_CPU_S and four.cpu_s - two.cpu_s >= FASTER * max(two.cpu_s - one.cpu_s, 1e-3)
    return peak or cpu
