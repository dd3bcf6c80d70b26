"""The inputs that a search goes on from: the smallest one for each behaviour seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import overload

from sandbox.judging.port import ExecutionVerdict
from sandbox.runners.port import Execution

MOST_BYTES = 8 << 20
"""Of all inputs together: a jail has little memory."""
MOST_BEHAVIOURS = 1 << 17
LARGEST = 64 << 10
"""Bytes of one input; a larger one is never kept."""
SLOTS = 256
"""Places of a pool that are drawn by weight."""
_RARE = 3

Behaviour = str | int


def behaviours(verdict: ExecutionVerdict, done: Execution) -> frozenset[Behaviour]:
    """What an execution did, as words and covered places: how it ended, with which message, what it made."""
    words: set[Behaviour] = {f"{verdict.kind} {verdict.place} {verdict.said}"}
    if verdict.kind == "accepted":
        words.add(f"size {len(done.stdout).bit_length()}")
        words.update(f"with {one}" for one in verdict.features)
    return frozenset(words) | done.covered


@dataclass(slots=True, eq=False)
class CorpusInput:
    """One input. `shows` are the behaviours that no smaller input has; `used` and `gave` count its use as a
    parent, and what was new in its children."""

    source: bytes
    shows: set[Behaviour] = field(default_factory=set)
    given: bool = False
    used: int = 0
    gave: int = 0


class InputPool(Sequence[bytes]):
    """What a strategy draws from: it may have an input in many places, and notes which were taken."""

    def __init__(self, inputs: Sequence[CorpusInput]) -> None:
        self._inputs = inputs
        self.taken: set[int] = set()

    def __len__(self) -> int:
        return len(self._inputs)

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...

    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(at, slice):
            return [one.source for one in self._inputs[at]]
        self.taken.add(at)
        return self._inputs[at].source

    def parents(self) -> list[CorpusInput]:
        """Those that were taken since the last time."""
        found = [self._inputs[at] for at in sorted(self.taken)]
        self.taken.clear()
        return list({id(one): one for one in found}.values())


class Corpus:
    """At most MOST_BYTES of inputs; the same additions in the same order give the same corpus."""

    def __init__(self) -> None:
        self._best: dict[Behaviour, CorpusInput] = {}
        self._seen: dict[Behaviour, int] = {}
        self._inputs: dict[bytes, CorpusInput] = {}
        self._bytes = 0
        self.new = 0
        """Inputs whose behaviour was new when they came."""

    def __len__(self) -> int:
        return len(self._inputs)

    def add(self, source: bytes, shown: Iterable[Behaviour], *, given: bool = False) -> int:
        """Keep the input where it is the first or smallest with a behaviour; how many behaviours were new.

        `given` is one that the caller knows already.
        """
        if source in self._inputs or len(source) > LARGEST:
            return 0
        fresh, best = 0, set()
        for one in shown:
            self._seen[one] = self._seen.get(one, 0) + 1
            holder = self._best.get(one)
            if holder is None:
                if len(self._best) >= MOST_BEHAVIOURS:
                    continue
                fresh += 1
            elif (len(holder.source), holder.source) <= (len(source), source):
                continue
            best.add(one)
        if not best or (not fresh and self._bytes + len(source) > MOST_BYTES):
            return 0
        self._keep(CorpusInput(source, best, given))
        self.new += bool(fresh) and not given
        return fresh

    def _keep(self, new: CorpusInput) -> None:
        for one in sorted(new.shows, key=str):
            holder = self._best.get(one)
            self._best[one] = new
            if holder is not None:
                holder.shows.discard(one)
                if not holder.shows:
                    self._drop(holder)
                    new.used, new.gave = holder.used, holder.gave
        self._inputs[new.source] = new
        self._bytes += len(new.source)
        while self._bytes > MOST_BYTES:
            self._drop(max(self._inputs.values(), key=lambda one: len(one.source)))

    def _drop(self, old: CorpusInput) -> None:
        if self._inputs.pop(old.source, None) is not None:
            self._bytes -= len(old.source)

    def pool(self, chance: Random) -> InputPool:
        """Inputs to draw from: those that are small, rare in what they show, and gave something lately."""
        inputs = list(self._inputs.values())
        if len(inputs) <= 1:
            return InputPool(inputs)
        weights = [self._weight(one) for one in inputs]
        return InputPool(chance.choices(inputs, weights, k=SLOTS))

    def _weight(self, one: CorpusInput) -> float:
        # what an input costs, to change and to execute, grows with its size
        rare = sum(1 for shown in one.shows if self._seen[shown] <= _RARE)
        productive = (1 + 4 * one.gave) / (4 + one.used)
        return (1 + min(rare, 8)) * (0.1 + productive) / (64 + len(one.source))

    def valuable(self, most: int, count: int) -> list[bytes]:
        """The inputs worth keeping for another round that the caller does not have: those that show the most
        and gave the most, per byte; at most `most` bytes and `count` inputs."""
        fresh = [one for one in self._inputs.values() if not one.given]
        fresh.sort(key=lambda one: -(len(one.shows) + 4 * one.gave) / (64 + len(one.source)))
        chosen: list[bytes] = []
        for one in fresh:
            if len(chosen) < count and len(one.source) <= most:
                chosen.append(one.source)
                most -= len(one.source)
        return chosen


def credit(parents: Iterable[CorpusInput], found: float, new: bool) -> None:
    """A parent whose children give only what is known (`found` below 0) is drawn less."""
    for one in parents:
        one.used += 1 - int(min(found, 0.0))
        one.gave += new
