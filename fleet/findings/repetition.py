"""Runs of a repeated text in a string: how a long pump becomes a short line. Pure and deterministic.

A run is found by comparing the string with itself, shifted by each period: one exclusive-or of two long
integers, so that 262,144 characters take well under a second in the worst case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_PERIOD = 256
"""Longest unit that is found, in characters."""
MAX_RUNS = 31
"""Most runs in one string; with the text between them at most 63 parts."""
MIN_TIMES = 4
MARGIN = 100
"""A run is written as a repetition if that saves this many characters: short repros stay as they are."""

_JOINS = len('" + """ + "')
"""What the borders of a run cost at most, with its own quotes."""
_NULLS = re.compile(rb"\0*")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a string: `unit`, `times` times."""

    unit: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class _Run:
    start: int
    period: int
    times: int
    saved: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.times


def parts(text: str) -> tuple[Part, ...]:
    """The string as parts that join to it; one part where no repetition saves `MARGIN` characters.

    The runs that save most are chosen first; of equal ones the one with the shortest unit, then the first.
    """
    chosen = _chosen(sorted(_runs(text), key=lambda run: (-run.saved, run.period, run.start)))
    made, at = [], 0
    for run in sorted(chosen, key=lambda run: run.start):
        if at < run.start:
            made.append(Part(text[at : run.start]))
        made.append(Part(text[run.start : run.start + run.period], run.times))
        at = run.end
    if at < len(text) or not made:
        made.append(Part(text[at:]))
    return tuple(made)


def _chosen(ordered: Iterable[_Run]) -> list[_Run]:
    chosen: list[_Run] = []
    for run in ordered:
        if len(chosen) == MAX_RUNS:
            break
        if all(run.end <= other.start or other.end <= run.start for other in chosen):
            chosen.append(run)
    return chosen


def _runs(text: str) -> Iterator[_Run]:
    """Each maximal stretch with a period, if writing it as a repetition saves `MARGIN` characters."""
    narrow = text.isascii()
    width = 1 if narrow else 4
    raw = text.encode("ascii" if narrow else "utf-32-le", "surrogatepass")
    whole = int.from_bytes(raw, "little")
    for period in range(1, min(MAX_PERIOD, len(text) // MIN_TIMES) + 1):
        same = width * (len(text) - period)
        low = whole & ((1 << (8 * same)) - 1)
        differs = (low ^ (whole >> (8 * width * period))).to_bytes(same, "little")
        for start, stretch in _zeros(differs, width, period * (MIN_TIMES - 1)):
            times = (stretch + period) // period
            unit = len(json.dumps(text[start : start + period])) - 2
            saved = unit * (times - 1) - len(f"*{times}") - _JOINS
            if saved >= MARGIN:
                yield _Run(start, period, times, saved)


def _zeros(differs: bytes, width: int, least: int) -> Iterator[tuple[int, int]]:
    """Start and length, in characters of `width` bytes, of each stretch of at least `least` equal ones."""
    sought, at = b"\0" * (width * least), 0
    while (at := differs.find(sought, at)) >= 0:
        end = _NULLS.match(differs, at).end()  # type: ignore[union-attr]  # it matches at least `sought`
        start = -(-at // width)
        if end // width - start >= least:
            yield start, end // width - start
        at = end
