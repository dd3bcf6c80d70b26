"""Edits of balanced groups and whole statements, which keep a balanced program balanced."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sandbox.fuzz.inputs.material import Edit, Material, apart, choose, depth_at, fitted, in_scope, place
from sandbox.fuzz.inputs.tokens import (
    INDENTED,
    INSIDE,
    NEWLINE,
    OPERATOR,
    TOP,
    VALUE,
    WORD,
    InputToken,
    Span,
    groups,
    statements,
)


def a_group(parts: Sequence[InputToken], found: Sequence[Span], like: str, chance: Random) -> Span | None:
    """One of the groups with this bracket."""
    if not found:
        return None
    start = place(chance, found)
    for step in range(len(found)):
        span = found[(start + step) % len(found)]
        if parts[span[0]].text == like:
            return span
    return None


def role(parts: Sequence[InputToken], at: int, keywords: frozenset[str]) -> tuple[str, str]:
    """What a group is for, as far as its bracket and the two tokens in front of it tell."""
    before = parts[at - 1] if at else None
    if before is None:
        return parts[at].text, ""
    if before.kind == WORD and before.text not in keywords:
        first = parts[at - 2].text if at > 1 else ""
        return parts[at].text, first if first in keywords else WORD
    return parts[at].text, before.text


def group_replaced(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A group becomes one with the same bracket, of another program; mostly one with the same role."""
    if not (found := groups(parts)):
        return
    start, end = choose(chance, found)
    donor, keywords = material.program(chance), material.words.keywords
    same = donor.groups
    if chance.random() < 0.8:
        here = role(parts, start, keywords)
        same = tuple(one for one in same if role(donor.tokens, one[0], keywords) == here)
    other = a_group(donor.tokens, same, parts[start].text, chance)
    if other is not None:
        new = donor.tokens[other[0] : other[1]]
        if chance.random() < 0.7:
            new = tuple(in_scope(new, parts, material, chance))
        parts[start:end] = fitted(new, depth_at(parts, start), material.family)


def group_hoisted(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """A group takes the place of one around it with the same bracket."""
    found = groups(parts)
    if len(found) < 2:
        return
    start, end = found[place(chance, found)]
    outer = [
        one for one in found if one[0] < start and end < one[1] and parts[one[0]].text == parts[start].text
    ]
    if outer:
        place_of = choose(chance, outer)
        parts[place_of[0] : place_of[1]] = [apart(parts[start]), *parts[start + 1 : end]]


def group_nested(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """A group stands once more inside itself, at the place of an inner one with the same bracket."""
    found = groups(parts)
    for start, end in found[place(chance, found) :] if found else ():
        inner = [
            one
            for one in found
            if start < one[0] and one[1] < end and parts[one[0]].text == parts[start].text
        ]
        if inner:
            at = choose(chance, inner)
            parts[at[0] : at[1]] = [apart(parts[start]), *parts[start + 1 : end]]
            return


def group_emptied(parts: list[InputToken], _material: Material, chance: Random) -> None:
    if found := groups(parts):
        start, end = choose(chance, found)
        del parts[start + 1 : end - 1]


def group_doubled(parts: list[InputToken], _material: Material, chance: Random) -> None:
    """A group stands twice; after a call or a block, what is in front of it too."""
    if found := groups(parts):
        start, end = choose(chance, found)
        if start and parts[start - 1].kind == WORD and chance.random() < 0.5:
            start -= 1
        parts[end:end] = [apart(parts[start]), *parts[start + 1 : end]]


def insert(parts: list[InputToken], at: int, new: Sequence[InputToken], family: str) -> None:
    """A statement in front of the one that starts here."""
    if new:
        deep = depth_at(parts, at)
        end = [InputToken(NEWLINE, "\n" + " " * deep, "")] if family in INDENTED else []
        parts[at:at] = [*fitted(new, deep, family), *end]


def statement_deleted(parts: list[InputToken], material: Material, chance: Random) -> None:
    if found := statements(parts, material.family):
        start, end, _ = choose(chance, found)
        indented = material.family in INDENTED
        del parts[start : end + 1 if indented and end < len(parts) else end]
        if start < len(parts):
            parts[start] = apart(parts[start]) if not indented else parts[start]


def statement_doubled(parts: list[InputToken], material: Material, chance: Random) -> None:
    if found := statements(parts, material.family):
        start, end, _ = choose(chance, found)
        insert(parts, start, parts[start:end], material.family)


def statement_moved(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A statement stands in front of another one; its own place keeps a copy half of the time."""
    found = statements(parts, material.family)
    if len(found) < 2:
        return
    start, end, kind = choose(chance, found)
    at = choose(chance, [one for one in found if (one.kind == TOP) == (kind == TOP)]).start
    moved = parts[start:end]
    if not start <= at < end and chance.random() < 0.5:
        del parts[start:end]
        at -= end - start if at >= end else 0
    insert(parts, at, moved, material.family)


def statement_taken(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A statement of another program, in front of one of this or instead of it; mostly its names become names
    of this program."""
    here, donor = statements(parts, material.family), material.program(chance)
    if not here:
        return
    start, end, kind = choose(chance, here)
    kinds = (kind,) if kind != VALUE else (VALUE, INSIDE)
    there = [one for one in donor.statements if one.kind in kinds]
    if not there:
        return
    first, last, taken = choose(chance, there)
    new: Sequence[InputToken] = donor.tokens[first:last]
    if chance.random() < 0.8:
        new = in_scope(new, parts, material, chance)
    if taken == VALUE or (kind != VALUE and chance.random() < 0.3):
        parts[start:end] = fitted(new, depth_at(parts, start), material.family)
    else:
        insert(parts, start, new, material.family)


def statement_wrapped(parts: list[InputToken], material: Material, chance: Random) -> None:
    """A statement stands inside another one."""
    found = statements(parts, material.family)
    if not found or not material.words.wraps:
        return
    start, end, _ = choose(chance, found)
    inner = "".join([one.before + one.text for one in parts[start:end]]).strip()
    outer = choose(chance, material.words.wraps).replace("@", inner)
    parts[start:end] = [InputToken(OPERATOR, outer, parts[start].before)]


GROUP_EDITS: tuple[Edit, ...] = (
    group_replaced,
    group_replaced,
    group_hoisted,
    group_nested,
    group_emptied,
    group_doubled,
)
STATEMENT_EDITS: tuple[Edit, ...] = (
    statement_deleted,
    statement_doubled,
    statement_moved,
    statement_taken,
    statement_taken,
    statement_wrapped,
)
SPLICE_EDITS: tuple[Edit, ...] = (group_replaced, statement_taken, statement_taken)
