"""What the edits are given: the programs to take parts from, and ways to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from sandbox.fuzz.inputs.tokens import INDENTED, NEWLINE, WORD, InputToken, Parsed, indentation, parsed, text
from sandbox.fuzz.inputs.words import LanguageWords, words
from sandbox.fuzz.port import InputSource

_Any = TypeVar("_Any")

MOST_BYTES = 65_536
"""Of an input: the largest source that compilers of this kind take, and enough for a deep one."""


class Material:
    """The corpus of one family of languages."""

    def __init__(self, corpus: Sequence[bytes], family: str) -> None:
        self.corpus, self.family = corpus, family

    @property
    def words(self) -> LanguageWords:
        return words(self.family)

    def program(self, chance: Random) -> Parsed:
        """One of the corpus; the first half of the time one of its last quarter, which is the newest."""
        many = len(self.corpus)
        at = int(chance.random() * many)
        if many > 8 and chance.random() < 0.5:
            at = many - 1 - at // 4
        return parsed(self.corpus[at], self.family)


Edit = Callable[[list[InputToken], Material, Random], None]
"""Changes a list of tokens in place; leaves it when there is nothing for it to change. No list is empty."""


def place(chance: Random, parts: Sequence[object]) -> int:
    return int(chance.random() * len(parts))


def choose(chance: Random, options: Sequence[_Any]) -> _Any:
    return options[int(chance.random() * len(options))]


def apart(token: InputToken) -> InputToken:
    """The token with white space in front of it, so that it stays a token of its own."""
    return token if token.before or token.kind == NEWLINE else InputToken(token.kind, token.text, " ")


def fitted(parts: Sequence[InputToken], deep: int, family: str) -> list[InputToken]:
    """Tokens for another place; in an indented language their lines are moved to a depth of `deep` blanks."""
    if family not in INDENTED:
        return [apart(parts[0]), *parts[1:]]
    lines = [indentation(one) for one in parts if one.kind == NEWLINE]
    shift = deep - min(lines, default=deep) + (4 if lines else 0)
    return [
        InputToken(NEWLINE, "\n" + " " * max(0, indentation(one) + shift), "") if one.kind == NEWLINE else one
        for one in parts
    ]


def depth_at(parts: Sequence[InputToken], at: int) -> int:
    """Indentation of the line that holds a token."""
    for index in range(min(at, len(parts)) - 1, -1, -1):
        if parts[index].kind == NEWLINE:
            return indentation(parts[index])
    return 0


def in_scope(
    new: Sequence[InputToken], parts: Sequence[InputToken], material: Material, chance: Random
) -> list[InputToken]:
    """The tokens with each name that the program does not have changed into one that it has: what is called
    into something called, other names into other names."""
    known = material.words
    fixed = known.keywords.union(known.types)
    called, named = _names(parts, fixed)
    if not called or not named:
        return list(new)
    changed: dict[str, str] = {name: name for name in (*called, *named)}
    for pool, own in zip(_names(new, fixed), (called, named), strict=True):
        for name in pool:
            changed[name] = changed.get(name) or choose(chance, own)
    return [
        InputToken(WORD, changed.get(one.text, one.text), one.before) if one.kind == WORD else one
        for one in new
    ]


def _names(parts: Sequence[InputToken], fixed: frozenset[str]) -> tuple[list[str], list[str]]:
    """The names before a bracket, and the others; each once, in order."""
    pools: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for at, one in enumerate(parts):
        if one.kind == WORD and one.text not in fixed:
            pools[0 if at + 1 < len(parts) and parts[at + 1].text == "(" else 1][one.text] = None
    return list(pools[0]), list(pools[1])


MOST_EDITS = 4
MOST_IDLE = 3
"""Further edits where the first ones found nothing to change."""


def mutation(edits: Sequence[Edit], family: str) -> InputSource:
    """Inputs with one to `MOST_EDITS` of these edits that are not the program they were made of; most have
    one."""

    def mutated(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        if not corpus:
            return None
        material = Material(corpus, family)
        before = material.program(chance).tokens
        parts = list(before)
        wanted = 1 + int(chance.random() ** 4 * MOST_EDITS)
        for tried in range(wanted + MOST_IDLE):
            if parts and (tried < wanted or tuple(parts) == before):
                choose(chance, edits)(parts, material, chance)
        made = text(parts)
        return made if 0 < len(made) <= MOST_BYTES and tuple(parts) != before else None

    return mutated
