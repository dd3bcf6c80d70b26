"""What the programs of a corpus teach where no grammar is given: parts that stand between the same neighbours
may stand for each other, and statements that follow each other elsewhere may do so here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, Material, apart, choose, fitted, in_scope, place
from sandbox.fuzz.inputs.structure import insert
from sandbox.fuzz.inputs.tokens import (
    CLOSE,
    NUMBER,
    OPEN,
    STRING,
    WORD,
    InputToken,
    Span,
    groups,
    parsed,
    text,
)
from sandbox.fuzz.port import InputSource

Context = tuple[str, str]
"""The neighbours on both sides: a keyword or a sign as it is, any other token by its kind."""

_LONGEST = 3
_LOOKED_AT = 12
_SMALL = 2048


def sign(token: InputToken, keywords: frozenset[str]) -> str:
    plain = token.kind in (NUMBER, STRING) or (token.kind == WORD and token.text not in keywords)
    return token.kind if plain else token.text


def contexts(source: bytes, family: str) -> Mapping[Context, Sequence[Span]]:
    """The balanced parts of a program by their neighbours: runs of up to `_LONGEST` tokens, and groups."""
    return _remembered(source, family) if len(source) <= _SMALL else {}


@lru_cache(maxsize=256)
def _remembered(source: bytes, family: str) -> Mapping[Context, Sequence[Span]]:
    found = parsed(source, family)
    keywords = Material((source,), family).words.keywords
    signs = ["", *(sign(one, keywords) for one in found.tokens), ""]
    made: dict[Context, list[Span]] = {}
    for start in range(len(found.tokens)):
        for end in range(start + 1, min(start + _LONGEST, len(found.tokens)) + 1):
            if found.tokens[end - 1].kind in (OPEN, CLOSE):
                break
            made.setdefault((signs[start], signs[end + 1]), []).append((start, end))
    for start, end in found.groups:
        made.setdefault((signs[start], signs[end + 1]), []).append((start, end))
        if start and found.tokens[start - 1].kind == WORD:
            made.setdefault((signs[start - 1], signs[end + 1]), []).append((start - 1, end))
    return made


def substituted(parts: list[InputToken], material: Material, chance: Random) -> bool:
    """A part becomes one that stands between the same neighbours in another program."""
    keywords = material.words.keywords
    spans: Sequence[Span] = groups(parts) if chance.random() < 0.3 else ()
    start, end = choose(chance, spans) if spans else _run(parts, chance)
    left = sign(parts[start - 1], keywords) if start else ""
    right = sign(parts[end], keywords) if end < len(parts) else ""
    for _ in range(_LOOKED_AT):
        source = choose(chance, material.corpus)
        if found := contexts(source, material.family).get((left, right)):
            first, last = choose(chance, found)
            new = list(parsed(source, material.family).tokens[first:last])
            if chance.random() < 0.7:
                new = in_scope(new, parts, material, chance)
            if [one.text for one in new] != [one.text for one in parts[start:end]]:
                parts[start:end] = fitted([apart(new[0]), *new[1:]], 4, material.family)
                return True
    return False


def _run(parts: Sequence[InputToken], chance: Random) -> Span:
    """A run of tokens without brackets, of one token at least."""
    start = place(chance, parts)
    while start and parts[start].kind in (OPEN, CLOSE):
        start -= 1
    end = start + 1
    longest = start + 1 + int(chance.random() * _LONGEST)
    while end < min(longest, len(parts)) and parts[end].kind not in (OPEN, CLOSE):
        end += 1
    return start, end


def recombined(parts: list[InputToken], material: Material, chance: Random) -> bool:
    """After a statement comes what follows one that begins alike in another program."""
    here = parsed(text(parts), material.family)
    if not here.statements:
        return False
    parts[:] = here.tokens
    start, end, kind = choose(chance, here.statements)
    for _ in range(_LOOKED_AT):
        donor = material.program(chance)
        for one in donor.statements:
            if one.kind == kind and donor.tokens[one.start].text == parts[start].text:
                after = [other for other in donor.statements if other.start == one.end and other.kind == kind]
                if after and end < len(parts):
                    new = donor.tokens[after[0].start : after[0].end]
                    insert(parts, end, in_scope(new, parts, material, chance), material.family)
                    return True
    return False


def learned(family: str) -> InputSource:
    def made(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        if not corpus:
            return None
        material = Material(corpus, family)
        parts = list(material.program(chance).tokens)
        changed = False
        for _ in range(1 + int(chance.random() ** 3 * 3)):
            if parts:
                step = recombined if chance.random() < 0.25 else substituted
                changed |= step(parts, material, chance)
        result = text(parts) if changed else b""
        return result if 0 < len(result) <= MOST_BYTES else None

    return made
