"""Programs in which one construct stands in itself, a few times: a cycle of a table of productions is gone
round again and again (recursive mutation: Aschermann et al., "NAUTILUS", 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sandbox.fuzz.inputs.material import choose
from sandbox.fuzz.inputs.places import contexts, way_to
from sandbox.fuzz.inputs.productions import KEPT, Productions, Step, finished, generate, size, some
from sandbox.fuzz.port import InputSource

Cycle = tuple[Step, ...]
"""Steps from a rule to the same rule."""
DOUBLINGS = 4
"""A cycle is gone round up to two to the power of this; three times at the median. Depth is the pump's."""


def cycles(productions: Productions) -> dict[str, list[Cycle]]:
    """For each rule, each of its constructs and each place in it from which the rule can be reached again:
    the shortest way there and back."""
    rules = productions.rules
    found: dict[str, list[Cycle]] = {}
    for name in rules:
        back = _ways_to(productions, name)
        for one in dict.fromkeys(rules[name]):
            for at, symbol in enumerate(one):
                if symbol in back:
                    found.setdefault(name, []).append(((one, at), *back[symbol]))
    return found


def _ways_to(productions: Productions, rule: str) -> dict[str, Cycle]:
    """The shortest way to the rule from each one that it can be reached from."""
    found: dict[str, Cycle] = {rule: ()}
    fresh = [rule]
    while fresh:
        last, fresh = fresh, []
        for name, each in productions.rules.items():
            if name in found:
                continue
            steps = [(one, at) for one in each for at, symbol in enumerate(one) if symbol in last]
            if steps:
                fresh.append(name)
                found[name] = (steps[0], *found[steps[0][0][steps[0][1]]])
    return found


def nests(productions: Productions) -> InputSource:
    """Each cycle once before any is there again; half of the programs go round others of its rule too."""
    ways, _ = contexts(productions)
    every = cycles(productions)
    all_of_them = [(name, one) for name, each in every.items() for one in each if name in ways]
    left: list[tuple[str, Cycle]] = []

    def nested(_corpus: Sequence[bytes], chance: Random) -> bytes | None:
        if not left:
            left.extend(all_of_them)
            chance.shuffle(left)
        if not left:
            return None
        name, cycle = left.pop()
        mixed = chance.random() < 0.5
        path: list[Step] = []
        for _ in range(round(2 ** (1 + chance.random() ** 2 * (DOUBLINGS - 1)))):
            path += choose(chance, every[name]) if mixed and path else cycle
        while name != productions.start:
            name, step, _ = way_to(ways[name], productions, chance)
            path.insert(0, step)
        table, deepest, longest = productions, 0, 0
        if chance.random() < 0.5:
            table = some(productions, chance, choose(chance, KEPT))
            deepest, longest = len(path) + int(chance.random() ** 2 * 6), size(chance)
        return finished(generate(table, chance, 0, deepest, longest, path), productions, chance)

    return nested
