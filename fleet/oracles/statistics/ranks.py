"""Whether one sample lies above another: by ranks, with the size of the effect, at a stated error rate. Pure.

Latencies have heavy tails and come in bursts, so nothing here assumes a distribution, and neighbours are not
taken for independent: typical values are compared as medians of blocks, and single slow values are counted.

The error rate. `ALPHA` bounds the chance that one look at all measures of a run on a healthy platform raises
anything: each test gets an equal share of it (Bonferroni; with only the smallest p-value at hand that is also
what Holm's procedure asks). What is raised is then measured three times more, in fresh jails, and must show
every time. Each oracle also requires a large effect. tests/oracles/test_false_alarms.py simulates the whole.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

ALPHA = 0.05
"""Chance of any false alarm in one look at all measures of a run, before proof."""
TESTS = 24
"""Tests of one run at most: targets of the explorer (6), each in its median and in its tail, each against its
control and against its history."""
SHARE = ALPHA / TESTS
"""Largest p-value of one test that counts."""
BLOCK = 5
"""Neighbours whose median is one observation."""
FEWEST = 30
"""Fewest values of a sample that is judged."""

Sample = Sequence[float]


@dataclass(frozen=True, slots=True)
class Excess:
    """How far one sample lies above another, by the medians of blocks.

    `p` is one-sided; `delta` is Cliff's: 1 if each value of one lies above each of the other.
    """

    p: float
    delta: float


@cache
def missing() -> str:
    """Why samples cannot be judged here; "" when they can."""
    lacks = [name for name in ("scipy", "ruptures", "numpy") if find_spec(name) is None]
    return f"not installed: {', '.join(lacks)} (pip install 'qa-fleet[stats]')" if lacks else ""


def load() -> None:
    """Import what judging needs, if it is there."""
    if not missing():
        import scipy.stats  # noqa: F401


def blocks(values: Sample) -> list[float]:
    """The medians of consecutive blocks; a rest that is shorter is left out."""
    return [statistics.median(values[at : at + BLOCK]) for at in range(0, len(values) - BLOCK + 1, BLOCK)]


def above(values: Sample, others: Sample) -> Excess:
    """How far `values`, in the order in which they were measured, lie above `others`; by Mann and Whitney."""
    from scipy.stats import mannwhitneyu

    mine, theirs = blocks(values), blocks(others)
    test = mannwhitneyu(mine, theirs, alternative="greater", method="auto")
    return Excess(float(test.pvalue), 2 * float(test.statistic) / (len(mine) * len(theirs)) - 1)


def more_often(values: Sample, others: Sample, limit: float) -> float:
    """One-sided p-value that values exceed a limit more often than others do; by Fisher's exact test."""
    from scipy.stats import hypergeom

    mine, theirs = exceeding(values, limit), exceeding(others, limit)
    return float(hypergeom.sf(mine - 1, len(values) + len(others), mine + theirs, len(values)))


def exceeding(values: Sample, limit: float) -> int:
    """How many values lie above a limit."""
    return sum(1 for one in values if one > limit)


def bursts(values: Sample, limit: float) -> int:
    """How often a value above a limit follows one that is not: one pause of a machine is one burst."""
    high = [one > limit for one in values]
    return sum(1 for before, now in zip([False, *high], high, strict=False) if now and not before)


def quantile(values: Sample, rank: float) -> float:
    """The quantile by nearest rank, `rank` from 0 to 1."""
    ordered = sorted(values)
    return ordered[max(math.ceil(rank * len(ordered)), 1) - 1]


def sketch(values: Sample, size: int = 40) -> tuple[float, ...]:
    """A sample by at most `size` of its quantiles, smallest and largest included: enough for a rank test."""
    if len(values) <= size:
        return tuple(sorted(values))
    ordered = sorted(values)
    return tuple(ordered[round(at * (len(ordered) - 1) / (size - 1))] for at in range(size))
