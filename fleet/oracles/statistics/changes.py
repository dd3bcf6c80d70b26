"""Change points of a measure over its history: since when it is as it is. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

SHORTEST = 5
"""Fewest looks between two changes."""
PENALTY = 3.0
"""Of PELT, in units of `log(n)` times the noise's variance: the usual BIC of a mean and a change point, plus
one for the search."""
FLOOR = 0.05
"""Least noise that a series is taken to have, in log units: 5 %."""


def change_points(values: Sequence[float]) -> list[int]:
    """The positions at which a new level begins, on a log scale: a level is a factor."""
    if len(values) < 2 * SHORTEST:
        return []
    import numpy
    import ruptures

    logs = [math.log(max(one, 1e-6)) for one in values]
    steps = [abs(after - before) for before, after in pairwise(logs)]
    noise = max(statistics.median(steps) / 0.954, FLOOR)  # of differences of normal values: 0.6745 * sqrt(2)
    signal = numpy.array(logs).reshape(-1, 1) / noise
    found = ruptures.Pelt(model="l2", min_size=SHORTEST, jump=1).fit(signal)
    return [int(at) for at in found.predict(pen=PENALTY * math.log(len(values)))[:-1]]


def best_level(values: Sequence[float]) -> range:
    """The positions of the lowest level that lasted: what the platform has shown that it can do."""
    edges = [0, *change_points(values), len(values)]
    levels = [range(start, end) for start, end in pairwise(edges)]
    return min(levels, key=lambda one: statistics.median(values[at] for at in one))
