"""Each construct at each place of another one: programs that have a given pair of them, half the shortest,
and programs made of nothing but such pairs, none twice before each was there.

A pair is an alternative of a table of productions, a place in it, and an alternative that may stand there;
what only hands on to another rule, with or without brackets, counts as part of the way (k-paths of length
two: Havrikov and Zeller, "Systematically covering input structure", 2019).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random

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

WANTED = 0.6
"""How often a rule has a pair that is wanted, where it may have one."""
BOUNDARIES = 0.2
"""The part of the inputs in which a literal is one at an edge."""
ODD = 0.3
"""How often a pair is reached by another way than the first, where most are refused."""
COMPOUND = 0.3
"""The part of the pairs whose construct has places itself, where most are refused: those have more to fit."""
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

    def placed(corpus: Sequence[bytes], chance: Random) -> bytes | None:
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


def each_place(productions: Productions) -> InputSource:
    """Programs with one pair and little else, in an order of chance, none again before all were there: for a
    table most of whose pairs are refused. Of those whose construct has places itself a part is left out."""
    ways, every = contexts(productions)
    inner = {name: constructs(productions, name) for name in {pair[2] for pair in every}}
    whole = [(pair, way) for pair in every for way in inner[pair[2]]]
    left: list[tuple[Pair, tuple[Step, ...]]] = []
    rules = productions.rules
    compound = {one for each in rules.values() for one in each if any(symbol in rules for symbol in one)}

    def placed(corpus: Sequence[bytes], chance: Random) -> bytes | None:
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
    """The pairs of each rule in an order of chance, each once before any is there again."""

    def __init__(self, productions: Productions) -> None:
        self._pairs: dict[str, list[tuple[Step, str]]] = {}
        for name, step, rule in contexts(productions)[1]:
            self._pairs.setdefault(name, []).append((step, rule))
        rules = {rule for pairs in self._pairs.values() for _, rule in pairs}
        self._inner = {rule: constructs(productions, rule) for rule in rules}
        self._left: dict[str, list[tuple[Step, ...]]] = {}

    def next(self, name: str, chance: Random) -> Sequence[Step]:
        if chance.random() >= WANTED or name not in self._pairs:
            return ()
        if not self._left.get(name):
            left = [(step, *way) for step, rule in self._pairs[name] for way in self._inner[rule]]
            chance.shuffle(left)
            self._left[name] = left
        return self._left[name].pop() if self._left[name] else ()


def pairs(productions: Productions) -> InputSource:
    """Programs with many pairs each."""
    left = WantedPairs(productions)

    def paired(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        deepest = 6 + int(chance.random() ** 2 * 16)
        made = generate(
            productions, chance, 0, deepest, size(chance), wanted=lambda name: left.next(name, chance)
        )
        return finished(made, productions, chance)

    return paired
