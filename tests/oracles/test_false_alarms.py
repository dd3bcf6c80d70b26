"""The error rate of the timing oracles, by simulation of quiet nights; and what they do find.

A night is one run: `PAGES` pages, each measured beside a control, judged against it and against earlier
nights. Machines: quiet; noisy (page and control slow down together, in spells); heavy tails; autocorrelated.
What is raised would then be proven three times more, which these rates leave out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest

from fleet.oracles.measures import measured
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.statistics import ranks
from fleet.oracles.table import judge
from fleet.store.rows import SampleRow

pytest.importorskip("scipy", reason="the extra `stats` is not installed")
PAGES, SLOTS, NIGHTS = 6, 50, 6
QUIET_NIGHTS = int(os.environ.get("QUIET_NIGHTS", "120"))
"""Of each of six kinds of machine: 720 nights and 4,320 measurements. None raised: were the rate ALPHA,
0.95 ** 120 = 0.2 % of such simulations would show none. `make year` simulates 350 of each."""
COSTLY, COSTLY_NIGHTS = 40.0, QUIET_NIGHTS // 4
"""The same for pages that take 200 ms instead of 5."""
Latency = Callable[[Random, int], float]
"""One latency in a slot of a night, before the load of the machine."""
Pair = tuple[tuple[float, ...], tuple[float, ...]]


def plain(chance: Random, slot: int) -> float:
    return 5 * math.exp(chance.gauss(0, 0.3))


def heavy(chance: Random, slot: int) -> float:
    """Pareto with infinite variance."""
    return 5 * chance.paretovariate(1.5)


def spells(chance: Random) -> list[float]:
    """The load of a machine by half slots: a walk that stays, and pauses of up to half a second."""
    level, found = 0.0, []
    for _ in range(2 * SLOTS):
        level = 0.95 * level + chance.gauss(0, 0.35)
        found.append(math.exp(abs(level)))
    return found


def night(chance: Random, latency: Latency, *, noisy: bool, factor: float = 1.0) -> Pair:
    """A page (`factor` as slow as its control) and its control, half a slot apart."""
    load = spells(chance) if noisy else [1.0] * 2 * SLOTS
    pauses = [(chance.uniform(0, SLOTS), chance.expovariate(1 / 200)) for _ in range(chance.randrange(4))]

    def value(at: int) -> float:
        paused = sum(max(0.0, ms - 100 * (at / 2 - when)) for when, ms in pauses if noisy and when <= at / 2)
        return latency(chance, at) * load[at] + paused

    own = tuple(factor * value(2 * slot) for slot in range(SLOTS))
    return own, tuple(value(2 * slot + 1) for slot in range(SLOTS))


def correlated(chance: Random) -> Latency:
    """Latencies that stay where they were: a page's own cache fills and empties."""
    level = 0.0

    def latency(_: Random, slot: int) -> float:
        nonlocal level
        level = 0.9 * level + chance.gauss(0, 0.3)
        return 5 * math.exp(level)

    return latency


def exchange(page: str, pair: Pair) -> Exchange:
    args = {"url": page, "control": "{site}/control", "rate": 10.0, "repeat": len(pair[0])}
    return Exchange("qa_fetch", args, {"status": 200, "samples_ms": pair[0], "control_ms": pair[1]})


def past_of(page: str, nights: Sequence[Pair]) -> Facts:
    rows: list[SampleRow] = [row for pair in nights for row in measured(exchange(page, pair))]
    return Facts(past={rows[0].measure: rows})


def costly(make: Callable[[Random], Latency]) -> Callable[[Random], Latency]:
    def slower(chance: Random) -> Latency:
        latency = make(chance)
        return lambda chance, slot: COSTLY * latency(chance, slot)

    return slower


def raised(chance: Random, make: Callable[[Random], Latency], noisy: bool) -> Iterator[str]:
    """What one quiet night raises; each page has its own usual latency."""
    kin = exchange("{site}/kin", night(chance, make(chance), noisy=noisy))
    for number in range(PAGES):
        factor, page = math.exp(chance.gauss(0, 0.7)), f"{{site}}/{number}"
        nights = [night(chance, make(chance), noisy=noisy, factor=factor) for _ in range(NIGHTS)]
        sibling = exchange("{site}/other", night(chance, make(chance), noisy=noisy))
        last = exchange(page, night(chance, make(chance), noisy=noisy, factor=factor))
        yield from (one.oracle for one in judge((kin, sibling, last), past_of(page, nights)))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("noisy", [False, True], ids=["quiet", "noisy"])
@pytest.mark.parametrize(
    "make", [lambda _: plain, lambda _: heavy, correlated], ids=["plain", "heavy", "auto"]
)
def test_quiet_nights_raise_less_than_stated(make: Callable[[Random], Latency], noisy: bool) -> None:
    for pace, nights in ((make, QUIET_NIGHTS), (costly(make), COSTLY_NIGHTS)):
        chance = Random(f"{make.__name__} {noisy}")
        alarms = [list(raised(chance, pace, noisy)) for _ in range(nights)]
        rate = sum(map(bool, alarms)) / nights
        shown = [one for one in alarms if one][:5]
        print(f"nights with an alarm before proof: {rate:.4f}, stated {ranks.ALPHA}; {shown}")
        assert rate <= ranks.ALPHA
