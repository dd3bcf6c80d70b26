"""Text of a platform that is meant as an order to a machine: noticed, never obeyed. Pure.

Nothing is decided by it: what a driver may do is the gate's. It tells a person that a text tries to steer.
A sign that people also use counts only beside another one, close by, so that ordinary pages give nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

NEAR = 400
"""Characters within which signs count together."""
MOST = 200_000
"""Characters of one answer that are read."""
QUOTE = 160
_TAGS = re.compile("[\U000e0020-\U000e007e]{6,}")
"""Letters of Unicode's plane of tags, which show nothing and spell ASCII; flags of regions have fewer."""
_TABLES = tomllib.loads((Path(__file__).parent / "instructions.toml").read_text())


def _compiled(table: str) -> Mapping[str, re.Pattern[str]]:
    signs: Mapping[str, str] = _TABLES[table]
    return {
        name: re.compile(sign.replace("{machine}", _TABLES["machine"]), re.IGNORECASE)
        for name, sign in signs.items()
    }


_ALONE, _TOGETHER = _compiled("alone"), _compiled("together")
_POINTS = ("address", "tool", "scope")
"""Of what counts in twos, the signs of which there must be one."""
_OTHERS = tuple(name for name in _TOGETHER if name not in _POINTS)


class MachineOrder(NamedTuple):
    """Which signs a text has, and the words around the first of them, of a stranger: clean before showing."""

    signs: tuple[str, ...]
    quote: str


def instructions(text: str) -> MachineOrder | None:
    """The signs of an order to a machine in a text; None for an ordinary one."""
    text = text[:MOST]
    if found := _TAGS.search(text):
        spelled = "".join(chr(ord(char) - 0xE0000) for char in found[0])
        return MachineOrder(("hidden", *dict(_found(_ALONE, spelled))), spelled[:QUOTE])
    if alone := dict(_found(_ALONE, text)):
        return MachineOrder(tuple(alone), _around(text, min(alone.values())))
    points = list(_found(_TOGETHER, text, _POINTS))
    others = list(_found(_TOGETHER, text, _OTHERS)) if points else []
    for name, at in points:
        near = {other: place for other, place in (*points, *others) if abs(place - at) <= NEAR}
        if len(near | {name: at}) > 1:
            return MachineOrder(tuple(sorted(near)), _around(text, min(near.values())))
    return None


def in_result(result: Mapping[str, object]) -> MachineOrder | None:
    """The first sighting in the texts of a tool's answer, names and descriptions in it included."""
    left = MOST
    for text in texts_of(result, 8):
        if left <= 0:
            return None
        if len(text) > _SHORTEST and (found := instructions(text[:left])):
            return found
        left -= len(text)
    return None


_SHORTEST = 12


def texts_of(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from texts_of(inner, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for inner in value:
            yield from texts_of(inner, depth - 1)


def _found(
    table: Mapping[str, re.Pattern[str]], text: str, names: Collection[str] = ()
) -> Iterator[tuple[str, int]]:
    """The signs in a text, each with its place, the first one last."""
    low = text.lower()
    for name in names or table:
        if any(word in low for word in _TABLES["words"].get(name, ("",))):
            yield from ((name, found.start()) for found in reversed(list(table[name].finditer(text))))


def _around(text: str, at: int) -> str:
    begin = max(0, at - QUOTE // 4)
    return " ".join(text[begin : begin + QUOTE].split())
