"""The lists of wording.toml: which words mean the same, deny, or say what comes first."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).with_name("wording.toml")


@dataclass(frozen=True, slots=True)
class WordLists:
    concepts: dict[str, tuple[str, int]]
    phrases: dict[str, tuple[tuple[tuple[str, ...], str, int], ...]]
    generic: frozenset[str]
    things: frozenset[str]
    """Concepts that say what a text is about."""
    events: frozenset[str]
    """Concepts that say what happens."""
    opposites: tuple[tuple[str, str], ...]
    polar: frozenset[str]
    alternatives: dict[str, str]
    weights: dict[str, float]
    limits: dict[str, float]
    units_after: frozenset[str]
    units_before: frozenset[str]


FILLER, NOT, OBJECT, BREAK, WISH, BEFORE, AFTER, AS = (
    "~filler",
    "~not",
    "~object",
    "~break",
    "~wish",
    "~before",
    "~after",
    "~as",
)
RELATIONS = {BEFORE: "before", AFTER: "before", AS: "as"}


_ENDINGS = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""))


def stem(word: str) -> str:
    """A word without its ending, roughly: `validated`, `validates` and `validating` are one."""
    if len(word) < 4 or not word.isalpha():
        return word
    for ending, put in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + put
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@cache
def lists() -> WordLists:
    """The lists of wording.toml; ValueError for a word that is in two of them."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    concepts: dict[str, tuple[str, int]] = {}
    phrases: dict[str, list[tuple[tuple[str, ...], str, int]]] = {}
    named: dict[str, Iterable[str]] = {
        FILLER: data["fillers"].split(),
        NOT: data["negators"].split(),
        OBJECT: data["objects"].split(),
        BREAK: data["breaks"].split(),
        WISH: data["wishes"].split(),
        BEFORE: data["before"].split(),
        AFTER: data["after"].split(),
        AS: data["as"].split(),
        **{name: words.split() for name, words in data["concepts"].items()},
    }
    stems: dict[str, tuple[str, int]] = {}
    for name, words in named.items():
        for word in words:
            bare, sign = (word[1:], 2) if len(word) > 1 and word[0] == "-" else (word, 1)
            parts = tuple(stem(part) for part in bare.split("_") if part)
            if len(parts) > 1:
                phrases.setdefault(parts[0], []).append((parts, name, sign))
            elif concepts.setdefault(bare, (name, sign)) != (name, sign):
                raise ValueError(f"{DATA.name}: {bare!r} is in two lists: {name}, {concepts[bare][0]}")
            else:
                stems.setdefault(parts[0], (name, sign))
    concepts = stems | concepts  # a word as it is written goes before a stem
    kinds = {one: kind for kind, names in data["alternatives"].items() for one in names.split()}
    return WordLists(
        concepts,
        {first: tuple(sorted(found, key=lambda one: -len(one[0]))) for first, found in phrases.items()},
        frozenset(data["generic"].split()),
        frozenset(data["things"].split()),
        frozenset(data["concepts"]) - {*data["things"].split(), *data["generic"].split()},
        tuple((a, b) for a, _, b in (one.partition("/") for one in data["opposites"].split())),
        frozenset(data["polar"].split()),
        kinds,
        data["weight"],
        data["limit"],
        frozenset(stem(word) for word in data["numbers"]["after"].split()),
        frozenset(stem(word) for word in data["numbers"]["before"].split()),
    )
