"""Finds output of programs that break internally in a text, by the dictionary `traces.toml`. Pure.

A refusal must not contain any of it: a stack trace, a panic, an error of the operating system or
of a database tells a user nothing and a stranger too much.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from fleet.findings.sighting import template

LOOKED_AT = 8_000
"""Most characters searched in a text; a tool's result keeps no more."""
HEADING = "Traceback (most recent call last):"
"""A document about errors has it too; what follows it in a real one is a frame."""
LEAST_FRAMES = 3
MILD = frozenset({"an operating-system error", "an internal path", "an internal address"})
_UNBOUND = re.compile(r"^ReferenceError: .{1,80} is not defined")
_OBJECT = re.compile(r"^<[\w.]{1,80} object at 0x")


@dataclass(frozen=True, slots=True)
class Trace:
    """Its kind, the words that show it, and its table: `pages` is a setting of a whole framework."""

    kind: str
    words: str
    table: str


@lru_cache(maxsize=256)  # a description is fetched before each question that follows from it
def find(text: str, *, paths: bool = True, heading: bool = True) -> Trace | None:
    """The first pattern found in a text, or None; `paths`: a path alone counts, `heading`: a heading does."""
    text = text[:LOOKED_AT] if heading else text[:LOOKED_AT].replace(HEADING, "")
    for table, kind, pattern in dictionary():
        if (paths or table != "paths") and (found := pattern.search(text)):
            return Trace(kind, found["path" if "path" in pattern.groupindex else 0].strip(), table)
    return None


def of_database(text: str) -> bool:
    """Whether it has the words of a database's error, among whatever else breaks."""
    return any(table == "databases" and one.search(text[:LOOKED_AT]) for table, _, one in dictionary())


def of_server(found: Trace) -> bool:
    """Whether it is one defect of a server, whatever page shows it: what a handler says of every file that is
    not there, a name that its code does not have, or an object in place of a text."""
    named = _UNBOUND.search(found.words) or _OBJECT.search(found.words)
    return found.kind == "an operating-system error" or named is not None


def place(text: str) -> str:
    """Where and how a program broke: its innermost frame in code of its own, and its error; "" if a text does
    not say, or if it speaks of a database, where one place executes many statements."""
    text = text[:LOOKED_AT]
    words, _ = _places()
    if (frame := next(_own(text), None)) is None:
        return ""
    error = words["error"].search(text)
    said = (error["type"] or template(error[0]).replace("-{n}", "{n}")) if error else ""
    return " ".join(filter(None, (frame["file"], frame["line"], frame.get("fn"), said)))


def library_path(text: str) -> str:
    """The way through libraries on which a program broke that shows no code of its own, as a digest of its
    frames; "" for fewer than three, which many failures share."""
    found = next(_frames(text[:LOOKED_AT]), None)
    if found is None or len(found[1]) < LEAST_FRAMES:
        return ""
    frames = " ".join(f"{one['file']}:{one['line']}" for one in found[1])
    return f"libraries {hashlib.sha256(frames.encode()).hexdigest()[:12]}"


def of_library(text: str) -> bool:
    """Whether a stack trace says where it broke, and no place is code of the program's own."""
    text = text[:LOOKED_AT]
    return any(True for _ in _frames(text)) and next(_own(text), None) is None


def _own(text: str) -> Iterator[dict[str, Any]]:
    """The frame of each notation that is the innermost one of code of its own."""
    words, _ = _places()
    for order, frames in _frames(text):
        own = [
            one
            for one in frames
            if not words["foreign"].search(one["file"])
            and not words["foreign_function"].search(one.get("fn") or "")
        ]
        if own:
            yield own[-1] if order == "last" else own[0]


def _frames(text: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The frames of each notation that a text has, and which of them is the innermost, `first` or `last`.

    None beside the words of a database.
    """
    if any(table == "databases" and pattern.search(text) for table, _, pattern in dictionary()):
        return
    _, orders = _places()
    for order, patterns in orders.items():
        for pattern in patterns:
            if frames := [found.groupdict() for found in pattern.finditer(text)]:
                yield order, frames


@cache
def _places() -> tuple[dict[str, re.Pattern[str]], dict[str, list[re.Pattern[str]]]]:
    said = tomllib.loads(files(__package__).joinpath("trace_places.toml").read_text(encoding="utf-8"))
    words = {key: re.compile(value) for key, value in said.items() if isinstance(value, str)}
    return words, {key: [*map(re.compile, said[key].values())] for key in ("last", "first")}


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
