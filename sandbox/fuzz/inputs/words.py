"""What the edits know of a family's language, kept as data: words.toml and boundaries.txt."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class LanguageWords:
    """`around` and `wraps` are templates for an expression and a statement, which stands at each `@`;
    `operators` gives the operators that may stand for one; a comment's @ is
    its text."""

    keywords: frozenset[str]
    types: tuple[str, ...]
    unary: tuple[str, ...]
    around: tuple[str, ...]
    wraps: tuple[str, ...]
    operators: dict[str, tuple[str, ...]]
    comments: tuple[str, ...]


@cache
def words(family: str) -> LanguageWords:
    every = tomllib.loads((_FOLDER / "words.toml").read_text("utf-8"))
    own = every.get(family, every["generic"])
    classes = [tuple(one.split()) for one in own["operators"]]
    return LanguageWords(
        keywords=frozenset(own["keywords"].split()),
        types=tuple(own["types"].split()),
        unary=tuple(own["unary"]),
        around=tuple(own["around"]),
        wraps=tuple(own["wraps"]),
        operators={operator: each for each in classes for operator in each},
        comments=tuple(own["comments"]),
    )


@cache
def boundaries(kind: str) -> tuple[str, ...]:
    """Literals at an edge for a kind of token, `number` or `string`; those of strings without quotes."""
    lines = (_FOLDER / "boundaries.txt").read_text("utf-8").splitlines()
    return tuple(line[len(kind) + 1 :] for line in lines if line.startswith(kind))
