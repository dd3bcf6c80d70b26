"""Which strategy makes the next input: the one that found most lately, and now and then any other."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

FLOOR = 0.2
"""The share of inputs that is spread over all strategies alike, so that none starves."""
MEMORY = 2_000
"""Inputs after which what was found counts half."""
COSTLY = 16_384
"""Bytes of an input that cost as much as what every execution costs."""
DEFECT = 8.0
"""What a new defect is worth, in new behaviours."""


class Bandit:
    """Chooses by yield per input; the same choices for the same chance and the same rewards."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._tried = dict.fromkeys(names, 0.0)
        self._found = dict.fromkeys(names, 0.0)
        self._made = dict.fromkeys(names, 0.0)
        self._spent = dict.fromkeys(names, 0.0)
        self._count = 0

    def choose(self, chance: Random) -> str:
        """The name of the next strategy."""
        return chance.choices(self._names, self.shares())[0]

    def shares(self) -> list[float]:
        """The probability of each strategy, by what it gives for its time; they add up to 1."""
        # one find in twenty tries is what an untried one is believed to give
        yields = [(self._found[name] + 1) / (self._tried[name] + 20) for name in self._names]
        total, floor = sum(yields), FLOOR / len(yields)
        shares = [
            (floor + (1 - FLOOR) * one / total) * (self._made[name] + 1) / (self._spent[name] + 1)
            for name, one in zip(self._names, yields, strict=True)
        ]
        return [one / sum(shares) for one in shares]

    def reward(self, name: str, found: float, size: int = 0, cost: float = 1.0) -> None:
        """What one input of the strategy gave: new behaviours, and DEFECT for each new defect; below 0, how
        many inputs without news it is as bad as. `size` in bytes: a large one takes the time of many, and
        `cost` says of how many its execution took it."""
        self._made[name] += 1
        self._spent[name] += cost
        self._tried[name] += cost + max(-found, 0.0) + size / COSTLY
        self._found[name] += min(max(found, 0.0), DEFECT)
        self._count += 1
        if self._count % MEMORY == 0:
            for kept in (self._tried, self._found, self._made, self._spent):
                for one in kept:
                    kept[one] /= 2
