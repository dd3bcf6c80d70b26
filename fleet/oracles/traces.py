"""Finds output of programs that break internally in a text, by the dictionary `traces.toml`. Pure.

A refusal must not contain any of it: a stack trace, a panic, an error of the operating system or
of a database tells a user nothing and a stranger too much.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LOOKED_AT = 8_000
"""Most characters searched in a text; a tool's result keeps no more."""
HEADING = "Traceback (most recent call last):"
"""A document about errors has it too; what follows it in a real one is a frame."""
MILD = frozenset({"an operating-system error", "an internal path", "an internal address"})


@dataclass(frozen=True, slots=True)
class Trace:
    """Its kind, the words that show it, and its table: `pages` is a setting of a whole framework."""

    kind: str
    words: str
    table: str


def find(text: str, *, paths: bool = True, heading: bool = True) -> Trace | None:
    """The first pattern found in a text, or None; `paths`: a path alone counts, `heading`: a heading does."""
    text = text[:LOOKED_AT] if heading else text[:LOOKED_AT].replace(HEADING, "")
    for table, kind, pattern in dictionary():
        if (paths or table != "paths") and (found := pattern.search(text)):
            return Trace(kind, found.group(0).strip(), table)
    return None


@cache
def dictionary() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Table, kind and pattern of each row; read and compiled at first use, as a start-up does not need it."""
    tables = tomllib.loads(files(__package__).joinpath("traces.toml").read_text(encoding="utf-8"))
    return tuple(
        (table, kind, re.compile(pattern))
        for table, kinds in tables.items()
        for kind, patterns in kinds.items()
        for pattern in patterns
    )
