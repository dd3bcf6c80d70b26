"""Programs whose lists are longer: an element of one stands a few times more, its numbers, or the name that
it begins with, told apart or not. Counts that are large are the pump's."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, Material, apart, choose
from sandbox.fuzz.inputs.productions import generate, of_family
from sandbox.fuzz.inputs.pump import element_start
from sandbox.fuzz.inputs.tokens import NUMBER, SEPARATOR, WORD, InputToken, parsed, text
from sandbox.fuzz.port import InputSource

DOUBLINGS = 4
"""Elements that a list is given more: up to two to the power of this, three at the median."""
LONGEST = 400
"""Characters after which a program that is made for it ends as soon as it can."""
MOST_LISTS = 3
_LOOKED_AT = 12


def lists(family: str) -> InputSource:
    """Of programs of the corpus and, where the family has a table, of its own."""
    table = of_family(family)

    def longer(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        material = Material(corpus, family)
        if table is not None and (not corpus or chance.random() < 0.5):
            made = generate(table, chance, int(chance.random() * 4), 8, round(chance.random() * LONGEST))
            parts = list(parsed(made.encode("utf-8", "replace"), family).tokens)
        else:
            parts = _with_lists(material, chance)
        for _ in range(1 + int(chance.random() ** 2 * MOST_LISTS)):
            lengthened(parts, material, chance)
        result = text(parts) if parts else b""
        return result if 0 < len(result) <= MOST_BYTES else None

    return longer


def _with_lists(material: Material, chance: Random) -> list[InputToken]:
    """One of the first programs drawn that has a separator; none without."""
    for _ in range(_LOOKED_AT if material.corpus else 0):
        parts = list(material.program(chance).tokens)
        if any(one.kind == SEPARATOR for one in parts):
            return parts
    return []


def lengthened(parts: list[InputToken], material: Material, chance: Random) -> None:
    """Put copies of an element before it, its separator included."""
    ends = [at for at, one in enumerate(parts) if one.kind == SEPARATOR]
    if not ends:
        return
    end = choose(chance, ends)
    start = element_start(parts, end)
    element = [apart(parts[start]), *parts[start + 1 : end + 1]]
    told_apart = _varied(element, material) if chance.random() < 0.5 else -1
    count = round(2 ** (chance.random() ** 1.5 * DOUBLINGS))
    for number in range(count):
        copy = list(element)
        if told_apart >= 0:
            kind, word, before = copy[told_apart]
            copy[told_apart] = InputToken(
                kind, word + str(number) if kind == WORD else str(number + 2), before
            )
        parts[start:start] = copy


def _varied(element: Sequence[InputToken], material: Material) -> int:
    """The first number, or the name at the beginning; -1 for neither."""
    known = material.words
    for at, one in enumerate(element):
        name = one.kind == WORD and one.text not in known.keywords and one.text not in known.types
        if one.kind == NUMBER or (name and at < 2):
            return at
    return -1
