"""The search of one round: seeds first, then strategies by their yield; what is wrong goes to `anomalies`."""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from sandbox.errors import Failure
from sandbox.fuzz.anomalies import Anomalies, Found
from sandbox.fuzz.corpus import LARGEST, Corpus, InputPool, behaviours, credit
from sandbox.fuzz.inputs.rates import AlternativeRates
from sandbox.fuzz.novelty import SURE, TextNovelty
from sandbox.fuzz.port import MOST_DEFECTS, InputSource
from sandbox.fuzz.relate import Relation
from sandbox.fuzz.shrink import Run, joined, stretches
from sandbox.fuzz.trials import HANG_SHARE, RoundOver, Trials
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.process import Ending
from sandbox.runners.port import Execution

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


LOOSE = "loose"
"""The strategy that has half of the processor time, shrinking left out, where there is one: its executions
are short, and of all that it has no two are alike."""
PAIRS = "pairs"
"""The strategy that each second of the other inputs is of: it goes through all pairs of a table, nothing
twice. Both wait for no luck, and so need no bandit."""
BRIEF_S = 1e-3
"""The least that an input counts of that time."""
DRY = 20_000
"""Executions without new behaviour after which a round is over."""
IDLE = 500
"""Inputs in a row that could not be made, or had been tried before, after which it is over too."""
KNOWN, HUNG = -2.0, -20.0
"""What an input gives that shows what is known, and one that ends at a limit."""
TRUSTED = 0.1
"""The share of inputs that are executed although they look like those that show what is known."""
NOVEL = 0.25
"""What an accepted input gives that does nothing new, of a text with something new in it."""
MOST_TRIED = 300_000
"""Inputs that are remembered, so that none is executed twice."""
GROWTH_RATE = 1 / 20
"""The share of accepted inputs whose repeats are made longer."""
SURROUNDED_SHARE, SURROUNDED_FIRST = 0.1, 40
"""Of all executions, those on refused inputs in other surroundings; so many are made at first."""
FRESH_RATE, NOVEL_RATE = 10, 3
"""How many times more often an input with new behaviour, or with a new text, is compared and made longer."""
REFRESH = 128
"""Inputs made from one pool."""


@dataclass(slots=True)
class Search:
    """One round. `around` puts a refused input into other surroundings; `seeds_done` counts seeds that
    were executed."""

    trials: Trials
    anomalies: Anomalies
    strategies: Mapping[str, InputSource]
    relations: Sequence[Relation]
    chance: Random
    rates: AlternativeRates = field(default_factory=AlternativeRates)
    novelty: TextNovelty | None = None
    around: Callable[[bytes, Random], bytes | None] | None = None
    corpus: Corpus = field(default_factory=Corpus)
    seeds_done: int = 0
    _tried: set[bytes] = field(default_factory=set)
    _news_at: int = 0
    _spent_s: float = 0.0
    _cost: float = 1.0
    _surrounded: int = 0

    @property
    def defects(self) -> dict[str, Found]:
        """By signature."""
        return self.anomalies.defects

    def run(self, given: Sequence[bytes], seeds: Sequence[bytes]) -> str:
        """Search to a bound; why it ended. `given` are known to the caller, and are not its news; with them,
        each second input is a seed until all have had their turn, else the first ones are."""
        try:
            for source in given:
                self._look(source, "corpus", given=True)
            why = self._explore(deque(seeds), 2 if given else 1)
        except RoundOver as over:
            why = str(over)
        except Failure:
            if not self.trials.accepted:
                raise
            why = "broken"
        with contextlib.suppress(Failure, RoundOver):
            self.anomalies.finish()
        return why

    def _explore(self, seeds: deque[bytes], turns: int) -> str:
        bandit, idle = Bandit(sorted(self.strategies.keys() - {LOOSE, PAIRS} or self.strategies)), 0
        pool = InputPool([])
        made, others, ahead_s = 0, 0, 0.0
        while len(self.defects) < MOST_DEFECTS:
            if self.anomalies.hanging and self.trials.left_s < HANG_SHARE * self.trials.seconds:
                return "time"
            made += 1
            loose, self._spent_s = LOOSE in self.strategies and ahead_s <= 0.0, 0.0
            if seeds and not loose and made % turns == 0:
                # one that the round's end cuts short is not done: the next round begins with it
                source = seeds.popleft()
                self.seeds_done += 1
                begun = self.trials.executions
                try:
                    self._look(source, "seed")
                except RoundOver:
                    self.seeds_done -= self.trials.executions <= begun + 1
                    raise
            else:
                if not pool or made % REFRESH == 0:
                    pool = self.corpus.pool(self.chance)
                others += not loose
                paired = PAIRS in self.strategies and others % 2 == 1
                name = LOOSE if loose else PAIRS if paired else bandit.choose(self.chance)
                idle = 0 if self._made(name, pool, bandit) else idle + 1
            ahead_s += max(self._spent_s, BRIEF_S) * (1 if loose else -1)
            if idle >= IDLE or self.trials.executions - self._news_at >= DRY:
                return "dry"
        return "full"

    def _made(self, name: str, pool: InputPool, bandit: Bandit) -> bool:
        """An input of a strategy; False when there was none, or it had been tried."""
        source = self.strategies[name](pool, self.chance)
        parents = pool.parents()
        known = source is not None and name != LOOSE and self.novelty and self.novelty.suspect(source)
        if known and self.chance.random() >= TRUSTED:
            return True  # it would most likely show only what is known
        found = self._look(source, name) if source is not None else None
        if name not in (LOOSE, PAIRS):
            bandit.reward(name, found or 0.0, len(source or b""), self._cost if found is not None else 1)
        credit(parents, found or 0.0, found is not None and found > NOVEL)
        return found is not None

    def _look(self, source: bytes, origin: str, *, given: bool = False) -> float | None:
        """Execute one input; new behaviours that it gave, or NOVEL, KNOWN or HUNG; None: not executed."""
        mark = hashlib.blake2b(source, digest_size=8).digest()
        if len(source) > LARGEST or mark in self._tried:
            return None
        if len(self._tried) < MOST_TRIED:
            self._tried.add(mark)
        before_s = self.trials.cpu_s
        verdict, done = self.trials.run(source)
        before, fresh, novel = len(self.anomalies), 0, 0
        if verdict.sound:
            self.rates.judged(source, accepted=verdict.kind == "accepted")
            fresh = self.corpus.add(source, behaviours(verdict, done), given=given)
            if verdict.kind == "accepted":
                novel = self.novelty.add(source) if self.novelty else 0
                more = 1 if given else FRESH_RATE if fresh else NOVEL_RATE if novel else 1
                often = more / max(self.trials.cost(done.cpu_s), 1.0)
                self._relate(source, done, origin, often)
                if self.chance.random() < GROWTH_RATE * often:
                    for longer, what, how in grown(self.trials, source):
                        self.anomalies.meet(longer, what, how, "growth")
            elif fresh and not given:
                self._surround(source)
        else:
            self.anomalies.meet(source, verdict, done, origin)
        self._spent_s = self.trials.cpu_s - before_s
        # what hangs has a price of its own
        self._cost = self.trials.cost(self._spent_s) if verdict.sound else 1.0
        self.anomalies.settle()
        self.anomalies.shrink_in_turn()
        found = float(bool(fresh)) + DEFECT * (len(self.anomalies) - before)
        if found:
            self._news_at = self.trials.executions
        elif not verdict.sound:
            found = HUNG if done.ending in (Ending.HANG, Ending.MEMORY) else KNOWN
            if self.novelty:
                self.novelty.accuse(source, self.trials.price(verdict, SURE))
        elif novel:
            found = NOVEL
        return found

    def _surround(self, source: bytes) -> None:
        """Put a refused input with a new message elsewhere, within a share of all executions."""
        begun = self.trials.executions
        if self.around is None or self._surrounded > SURROUNDED_SHARE * begun + SURROUNDED_FIRST:
            return
        for other, what, how in elsewhere(self.trials, source, self.around, self.chance):
            self.anomalies.meet(other, what, how, "surroundings")
        self._surrounded += self.trials.executions - begun

    def _relate(self, source: bytes, done: Execution, origin: str, often: float) -> None:
        for relation in self.relations:
            if relation.only in self.anomalies.known or relation.only in self.defects:
                continue
            if self.chance.random() < relation.rate * often:
                for verdict, variant, alone in relation.look(self.trials, source, done):
                    if alone is not None:
                        self.anomalies.meet(variant, verdict, alone, origin)
                    else:
                        self.anomalies.meet(source, verdict, done, origin, relation)


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
    """A refused input in a few surroundings (`surrounded`)."""
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
