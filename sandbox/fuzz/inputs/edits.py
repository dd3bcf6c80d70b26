"""Edits of single tokens and of the expressions around them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sandbox.fuzz.inputs.material import Edit, Material, apart, choose, in_scope, place
from sandbox.fuzz.inputs.tokens import (
    CLOSE,
    NUMBER,
    OPEN,
    OPERATOR,
    PARTNERS,
    STRING,
    WORD,
    InputToken,
    Span,
    groups,
)
from sandbox.fuzz.inputs.words import boundaries

_REPLACED = frozenset({WORD, NUMBER, STRING, OPERATOR})
_ATOMS = frozenset({WORD, NUMBER, STRING})
_LOOKED_AT = 60


def find(parts: Sequence[InputToken], kind: str, chance: Random) -> int:
    """The index of a token of this kind, looked for from a random place on; -1 when there is none near."""
    start, many = place(chance, parts), len(parts)
    for step in range(min(_LOOKED_AT, many)):
        at = (start + step) % many
        if parts[at].kind == kind:
            return at
    return -1


def delete(parts: list[InputToken], _material: Material, chance: Random) -> None:
    at = place(chance, parts)
    del parts[at : at + 1 + int(chance.random() ** 3 * 6)]
    if at < len(parts):
        parts[at] = apart(parts[at])


def duplicate(parts: list[InputToken], _material: Material, chance: Random) -> None:
    at = place(chance, parts)
    count = 1 + int(chance.random() ** 3 * 8)
    parts[at:at] = [apart(one) for one in parts[at : at + count]]


def swap(parts: list[InputToken], _material: Material, chance: Random) -> None:
    one, other = place(chance, parts), place(chance, parts)
    parts[one], parts[other] = apart(parts[other]), apart(parts[one])


def replace(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A token becomes one of the same kind from the corpus."""
    at = place(chance, parts)
    kind = parts[at].kind
    if kind not in _REPLACED:
        return
    donor = material.program(chance).tokens
    if donor and (found := find(donor, kind, chance)) >= 0:
        parts[at] = InputToken(kind, donor[found].text, parts[at].before)


def rename(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A name becomes another name of the same program, so that it is more often one in scope."""
    at = find(parts, WORD, chance)
    known = material.words
    if at < 0 or parts[at].text in known.keywords or parts[at].text in known.types:
        return
    other = find(parts, WORD, chance)
    if parts[other].text not in known.keywords and parts[other].text not in known.types:
        parts[at] = InputToken(WORD, parts[other].text, parts[at].before)


def operator(parts: list[InputToken], material: Material, chance: Random) -> None:
    """An operator becomes another one of its class."""
    at = find(parts, OPERATOR, chance)
    others = material.words.operators.get(parts[at].text, ()) if at >= 0 else ()
    if others:
        parts[at] = apart(InputToken(OPERATOR, choose(chance, others), parts[at].before))


def boundary(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A literal becomes one at an edge; half of the numbers keep their suffix."""
    kind = NUMBER if chance.random() < 0.75 else STRING
    at = find(parts, kind, chance)
    if at < 0:
        return
    _, old, before = parts[at]
    edge = choose(chance, boundaries(kind))
    if kind == STRING:
        edge = old[: old.index(old[-1]) + 1] + edge + old[-1]
    else:
        for suffix in material.words.types:
            if old.endswith(suffix) and chance.random() < 0.5:
                edge += suffix
    parts[at] = InputToken(kind, edge, before)


def retype(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A type becomes another one, of the table or of the corpus."""
    types = material.words.types
    start, many = place(chance, parts), len(parts)
    for step in range(min(_LOOKED_AT, many)):
        at = (start + step) % many
        if parts[at].text in types:
            parts[at] = InputToken(WORD, choose(chance, types), parts[at].before)
            return


def expression(parts: Sequence[InputToken], material: Material, chance: Random) -> Span | None:
    """A name, a literal, a call or a group, sometimes with the operator and the operand after it."""
    start, many = place(chance, parts), len(parts)
    keywords = material.words.keywords
    for step in range(min(_LOOKED_AT, many)):
        at = (start + step) % many
        if (parts[at].kind in _ATOMS and parts[at].text not in keywords) or parts[at].text == "(":
            end = _operand(parts, at)
            if end and end + 1 < many and parts[end].kind == OPERATOR and chance.random() < 0.3:
                end = _operand(parts, end + 1) or end
            if end:
                return at, end
    return None


def _operand(parts: Sequence[InputToken], at: int) -> int:
    """The end of the operand that starts here, its brackets included; 0 when they do not close."""
    if parts[at].kind != OPEN:
        at += 1
    while at < len(parts) and parts[at].text in ("(", "["):
        waiting = []
        while at < len(parts):
            if parts[at].kind == OPEN:
                waiting.append(PARTNERS[parts[at].text])
            elif parts[at].kind == CLOSE and waiting.pop() != parts[at].text:
                return 0
            at += 1
            if not waiting:
                break
        if waiting:
            return 0
    return at


def wrap(parts: list[InputToken], material: Material, chance: Random) -> None:
    """An expression stands inside another one, half of the time inside two."""
    span = expression(parts, material, chance)
    if span is None:
        return
    inner = "".join([one.before + one.text for one in parts[span[0] : span[1]]]).strip()
    outer = choose(chance, material.words.around).replace("@", inner)
    if chance.random() < 0.5:
        outer = choose(chance, material.words.around).replace("@", outer)
    parts[span[0] : span[1]] = [InputToken(OPERATOR, outer, parts[span[0]].before)]


def prefix(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A unary operator before an expression, or right after an operator, whatever follows it there."""
    if not material.words.unary:
        return
    after = find(parts, OPERATOR, chance) + 1 if chance.random() < 0.5 else 0
    if not 0 < after < len(parts):
        span = expression(parts, material, chance)
        if span is None:
            return
        after = span[0]
    parts[after : after + 1] = [
        InputToken(OPERATOR, choose(chance, material.words.unary), " "),
        InputToken(*parts[after][:2], ""),
    ]


def exchange(parts: list[InputToken], material: Material, chance: Random) -> None:
    """An expression becomes one of the corpus."""
    span = expression(parts, material, chance)
    donor = material.program(chance).tokens
    other = expression(donor, material, chance) if donor else None
    if span is not None and other is not None:
        new = in_scope(donor[other[0] : other[1]], parts, material, chance)
        parts[span[0] : span[1]] = [apart(new[0]), *new[1:]]


def unwrap(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """A pair of brackets goes, and what is in it stays."""
    if found := groups(parts):
        start, end = choose(chance, found)
        parts[start:end] = [apart(one) for one in parts[start + 1 : end - 1]]


TOKEN_EDITS: tuple[Edit, ...] = (delete, duplicate, swap, replace, replace, rename, rename, unwrap)
EXPRESSION_EDITS: tuple[Edit, ...] = (operator, boundary, boundary, retype, wrap, wrap, prefix, exchange)
