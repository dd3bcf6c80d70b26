"""How what is repeated shrinks: the count first, by halves, then what is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sandbox.fuzz.port import Enough
from sandbox.fuzz.shrink_state import Keeps, Shrinking
from sandbox.fuzz.shrink_tokens import Parts, Run, joined, split, stretches

LONG = 64
"""A run of as many repetitions that cannot be shorter gets an eighth more in the end: how deep a stack is
depends a little on the process that starts the program."""


def runs(state: Shrinking) -> None:
    """Make every run as short as it may be: those of one length together, then each alone."""
    parts = stretches(state.best)
    found = [at for at, one in enumerate(parts) if isinstance(one, Run)]
    for at in found:  # the closing half of a nest is often not even read
        parts = _fewest(state, parts, [at], only=0)
    counts = {_count(parts[at]) for at in found}
    for count in sorted(counts, reverse=True):
        together = [at for at in found if _count(parts[at]) == count]
        if count and len(together) > 1:
            parts = _fewest(state, parts, together)
    for at in found:
        if _count(parts[at]):
            parts = _fewest(state, parts, [at])
            parts = _thinner(state, parts, at)


def _count(part: bytes | Run) -> int:
    return len(part.units) if isinstance(part, Run) else 0


def _fewest(state: Shrinking, parts: Parts, places: Sequence[int], only: int | None = None) -> Parts:
    """The parts with as few repetitions at these places as a search by halves finds."""

    def with_count(count: int) -> Parts:
        changed = list(parts)
        for at in places:
            one = parts[at]
            assert isinstance(one, Run)
            changed[at] = replace(one, units=one.units[:count])
        return changed

    low, high = -1, _count(parts[places[0]])
    for first in (only,) if only is not None else (0, 1):
        if state.keeps(joined(with_count(first))):
            return with_count(first)
        low = max(low, first)
    while only is None and high - low > 1:
        middle = (low + high) // 2
        if state.keeps(joined(with_count(middle))):
            high = middle
        else:
            low = middle
    return with_count(high)


def _thinner(state: Shrinking, parts: Parts, at: int) -> Parts:
    """Remove tokens from each repetition."""
    one = parts[at]
    assert isinstance(one, Run)
    place = 0
    while place < len(split(one.units[0])):
        fewer = replace(one, units=tuple(_without(unit, place) for unit in one.units))
        changed = [*parts[:at], fewer, *parts[at + 1 :]]
        if state.keeps(joined(changed)):
            parts, one = changed, fewer
        else:
            place += 1
    return parts


def _without(unit: bytes, place: int) -> bytes:
    tokens = split(unit)
    return b"".join(tokens[:place] + tokens[place + 1 :])


def widened(text: bytes, still: Keeps) -> bytes:
    """The text with its long runs an eighth longer, if that still shows the defect."""
    parts = stretches(text)
    wide = [_wide(one) if isinstance(one, Run) and len(one.units) >= LONG else one for one in parts]
    try:
        return joined(wide) if joined(wide) != text and still(joined(wide)) else text
    except Enough:
        return text


def _wide(run: Run) -> Run:
    return Run(run.units + run.units[: len(run.units) // 8])
