"""Each construct at each place of another one: programs that have a given pair of them, half the shortest,
and programs made of nothing but such pairs, none twice before each was there.

A pair is an alternative of a table of productions, a place in it, and an alternative that may stand there;
what only hands on to another rule, with or without brackets, counts as part of the way (k-paths of length
two: Havrikov and Zeller, "Systematically covering input structure", 2019).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import TypeVar

from sandbox.fuzz.inputs.edits import boundary
from sandbox.fuzz.inputs.material import Material, choose
from sandbox.fuzz.inputs.productions import (
    KEPT,
    Productions,
    Step,
    finished,
    generate,
    size,
    some,
)
from sandbox.fuzz.inputs.rates import REDRAWN, Alternative
from sandbox.fuzz.inputs.tokens import parsed, text
from sandbox.fuzz.port import InputSource

DEEPER_PAIRS, LONGEST_PAIRED = 8, 1000
"""Steps that a program of pairs goes on below the first of them, and its characters, at most: one known
defect in a program hides all of its pairs."""
SOON = 64
"""Pairs of a rule after which those of a program that was not accepted come again."""
GOLDEN = (5**0.5 - 1) / 2
"""What successive multiples of it leave beyond a whole number are never close together."""
BOUNDARIES = 0.2
"""The part of the inputs in which a literal is one at an edge."""
ODD = 0.3
"""How often a pair is reached by another way than the first, where most are refused."""
COMPOUND = 0.3
"""The part of the pairs whose construct has places itself, where most are refused: those have more to fit."""
_Any = TypeVar("_Any")
_BRACKETS = re.compile(r"[()\s]*")
_MOST_WAYS = 400

Pair = tuple[str, Step, str]
"""The rule, its alternative with the place, and the rule that stands there."""


def _hands_on(one: Alternative, rules: Mapping[str, object]) -> int:
    """The place of the only rule in an alternative that is nothing else; -1 for a construct."""
    inner = [at for at, symbol in enumerate(one) if symbol in rules]
    plain = all(_BRACKETS.fullmatch(symbol) for at, symbol in enumerate(one) if at not in inner)
    return inner[0] if len(inner) == 1 and plain else -1


def constructs(productions: Productions, rule: str) -> list[tuple[Step, ...]]:
    """The ways from a rule to each construct that may stand for it, shortest first, each construct once."""
    found: dict[Alternative, tuple[Step, ...]] = {}
    seen, waiting = {rule}, [(rule, tuple[Step, ...]())]
    for name, way in waiting:
        for one in productions.rules[name]:
            at = _hands_on(one, productions.rules)
            if at < 0:
                found.setdefault(one, (*way, (one, -1)))
            elif one[at] not in seen:
                seen.add(one[at])
                waiting.append((one[at], (*way, (one, at))))
    return list(found.values())[:_MOST_WAYS]


def contexts(productions: Productions) -> tuple[dict[str, list[Pair]], list[Pair]]:
    """How each rule is reached from the start by the fewest steps, in every such way, and every place."""
    rules = productions.rules
    depth, waiting = {productions.start: 0}, [productions.start]
    ways: dict[str, list[Pair]] = {}
    every: list[Pair] = []
    for name in waiting:
        for one in rules[name]:
            for at, symbol in enumerate(one):
                if symbol not in rules:
                    continue
                if symbol not in depth:
                    depth[symbol] = depth[name] + 1
                    waiting.append(symbol)
                pair = (name, (one, at), symbol)
                if depth[symbol] > depth[name]:
                    ways.setdefault(symbol, []).append(pair)
                if _hands_on(one, rules) < 0:
                    every.append(pair)
    return ways, every


def way_to(options: Sequence[Pair], productions: Productions, chance: Random) -> Pair:
    """One of the ways to a rule; one that a compiler refuses less often."""
    for _ in range(REDRAWN):
        one = choose(chance, options)
        if _taken(one, productions, chance):
            break
    return one


def places(productions: Productions, family: str) -> InputSource:
    """Programs with one pair each, every pair as likely as the others."""
    ways, every = contexts(productions)
    inner = {name: constructs(productions, name) for name in {pair[2] for pair in every}}
    sizes = list(accumulate(len(inner[pair[2]]) for pair in every))

    def placed(_corpus: Sequence[bytes], chance: Random) -> bytes | None:
        name, step, rule = chance.choices(every, cum_weights=sizes)[0]
        path = [step, *choose(chance, inner[rule])]
        while name != productions.start:
            name, step, _ = way_to(ways[name], productions, chance)
            path.insert(0, step)
        table, deepest, longest = productions, 0, 0
        if chance.random() < 0.5:
            table = some(productions, chance, choose(chance, KEPT))
            deepest, longest = len(path) + int(chance.random() ** 2 * 10), size(chance)
        made = finished(generate(table, chance, 0, deepest, longest, path), productions, chance)
        if made is None or chance.random() > BOUNDARIES:
            return made
        parts = list(parsed(made, family).tokens)
        boundary(parts, Material((made,), family), chance)
        return text(parts)

    return placed


def each_place(productions: Productions, turn: int = 0) -> InputSource:
    """Programs with one pair and little else, in an order of chance, none again before all were there: for a
    table most of whose pairs are refused. Of those whose construct has places itself a part is left out."""
    ways, every = contexts(productions)
    inner = {name: constructs(productions, name) for name in {pair[2] for pair in every}}
    whole = [(pair, way) for pair in every for way in inner[pair[2]]]
    left = in_turn(whole, turn)
    rules = productions.rules
    compound = {one for each in rules.values() for one in each if any(symbol in rules for symbol in one)}

    def placed(_corpus: Sequence[bytes], chance: Random) -> bytes | None:
        while whole:
            if not left:
                left.extend(whole)
                chance.shuffle(left)
            pair, way = left.pop()
            if way[-1][0] in compound and chance.random() > COMPOUND:
                continue
            if _taken(pair, productions, chance) and _taken(_last(pair, way), productions, chance):
                break
        else:
            return None
        name, step, _ = pair
        path = [step, *way]
        while name != productions.start:
            odd = chance.random() < ODD
            name, step, _ = way_to(ways[name], productions, chance) if odd else ways[name][0]
            path.insert(0, step)
        return finished(generate(productions, chance, 0, 0, 0, path), productions, chance)

    return placed


def _last(pair: Pair, way: Sequence[Step]) -> Pair:
    """The construct at the end of a way as a pair of its own."""
    rule = pair[2] if len(way) == 1 else way[-2][0][way[-2][1]]
    return rule, way[-1], ""


def _taken(pair: Pair, productions: Productions, chance: Random) -> bool:
    """Whether its alternative is taken, which is seldom for one that is refused elsewhere."""
    name, (one, _), _ = pair
    return productions.rates is None or chance.random() < productions.rates.share(name, one)


class WantedPairs:
    """The pairs of each rule, each once before any is there again; those of a program that was not accepted
    come once more, in another one: what is refused, or known, hides the rest of a program."""

    def __init__(self, productions: Productions, turn: int) -> None:
        ways: dict[str, list[tuple[Step, ...]]] = {}
        inner: dict[str, list[tuple[Step, ...]]] = {}
        for name, step, rule in contexts(productions)[1]:
            found = inner.get(rule) or inner.setdefault(rule, constructs(productions, rule))
            ways.setdefault(name, []).extend((step, *way) for way in found)
        self._every = {name: in_turn(each, turn) for name, each in ways.items()}
        self._productions, self._chance = productions, Random(turn)
        self._left = {name: deque[tuple[Step, ...]]() for name in ways}
        self._used: list[tuple[str, tuple[Step, ...]]] = []
        self._again: set[int] = set()
        self._made: bytes | None = None

    def begin(self, chance: Random) -> str:
        """The rule that a program should be made for: by the pairs that are left; "" where there is none."""
        rates = self._productions.rates
        if self._made is not None and rates is not None and not rates.accepted(self._made):
            for name, way in self._used:
                if id(way) not in self._again:
                    self._again.add(id(way))
                    left = self._left[name]
                    left.insert(int(chance.random() * min(len(left), SOON)), way)
        self._used, self._made = [], None
        if not any(self._left.values()):
            self._again.clear()
            for name, each in self._every.items():
                self._left[name].extend(each)
        sizes = [len(one) for one in self._left.values()]
        return chance.choices(list(self._left), sizes)[0] if any(sizes) else ""

    def next(self, name: str) -> Sequence[Step]:
        """The steps of one that is left, and that is not refused elsewhere; none where chance may decide."""
        left = self._left.get(name) or deque[tuple[Step, ...]]()
        for _ in range(REDRAWN):
            if not left:
                break
            way = left.popleft()
            if self._taken(name, way):
                self._used.append((name, way))
                return way
        return ()

    def _taken(self, name: str, way: Sequence[Step]) -> bool:
        pair = (name, way[0], way[0][0][way[0][1]])
        return all(_taken(one, self._productions, self._chance) for one in (pair, _last(pair, way[1:])))

    def became(self, made: bytes | None) -> None:
        """The program with the pairs that were taken since it was begun."""
        self._made = made


def in_turn(every: Iterable[_Any], turn: int) -> list[_Any]:
    """All in an order of chance that is always the same, from a place on that is far from where the turns
    before it began: rounds that know nothing of each other go through all together."""
    order = list(every)
    Random(len(order)).shuffle(order)
    at = int(len(order) * (turn * GOLDEN % 1))
    return order[at:] + order[:at]


def pairs(productions: Productions, turn: int = 0) -> InputSource:
    """Programs of nothing but pairs that were not there yet, as far as their rules have some left."""
    left, (ways, _) = WantedPairs(productions, turn), contexts(productions)

    def paired(_corpus: Sequence[bytes], chance: Random) -> bytes | None:
        name = left.begin(chance)
        if not name:
            return None
        path = [*left.next(name)]
        while name != productions.start:
            name, step, _ = way_to(ways[name], productions, chance)
            path.insert(0, step)
        deepest = len(path) + int(chance.random() ** 2 * DEEPER_PAIRS)
        longest = round(LONGEST_PAIRED * chance.random() ** 2)
        made = finished(
            generate(productions, chance, 0, deepest, longest, path, left.next), productions, chance
        )
        left.became(made)
        return made

    return paired
