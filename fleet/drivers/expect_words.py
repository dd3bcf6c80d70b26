"""What is said of an expectation that cannot be decided: operators, literals and types in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fleet.drivers.expect import functions
from fleet.drivers.expect_shapes import BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT, TypeShape
from fleet.personas.check import suggestion

SAME = (
    'make both sides one type: 200 is an int, 200.0 a double, "200" a string; '
    "int(), double() and string() convert"
)
LITERALS: Mapping[str, TypeShape] = MappingProxyType(
    {
        "INT_LIT": INT,
        "UINT_LIT": UINT,
        "FLOAT_LIT": DOUBLE,
        "STRING_LIT": STRING,
        "MLSTRING_LIT": STRING,
        "BYTES_LIT": BYTES,
        "BOOL_LIT": BOOL,
        "NULL_LIT": NULL,
    }
)
"""Types of literals by their tokens there."""
METHODS = frozenset(
    {"literal", "ident", "ident_arg", "list_lit", "map_lit"}
    | {"member_object", "member_dot", "member_dot_arg", "member_index"}
)
"""Nodes with a method of their own; any other node is its only child."""
TYPES = frozenset(
    {"bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string"}
    | {"timestamp", "type", "uint"}
)


def mixed(word: str, one: TypeShape, other: TypeShape) -> bool:
    """Whether the library would take both, but never say anything: it holds booleans for numbers."""
    if "any" in (one.kind, other.kind):
        return False
    if word == "in":
        members = other.members.kind if other.kind == "list" else "string"
        return members not in ("any", one.kind)
    return (one.kind == "bool") != (other.kind == "bool")


PARTIAL = frozenset({"contains", "endsWith", "matches", "startsWith"})
"""Functions that ask for a part of a text."""


def unheard(word: str, shapes: tuple[TypeShape, TypeShape]) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Values that a text with known words never has: its side (0 or 1), its words, the value."""
    one, other = shapes
    if word in ("==", "!="):
        pairs = [(0, one, other), (1, other, one)]
    elif word == "in":  # a text in a written list, or a written text in a list of known words
        pairs = [(0, one, member) for member in other.items] + [(1, other.members, one)]
    else:
        return
    for side, text, given in pairs:
        if text.words and isinstance(given.literal, str) and given.literal not in text.words:
            yield side, text.words, given.literal


def never(value: str, words: Sequence[str]) -> str:
    """That a text with these words is never this value, and which was meant."""
    return f"is never {value[:40]!r}{suggestion(value, words)}"


def never_lower(shape: TypeShape, given: TypeShape) -> tuple[str, str]:
    """That a key in lower case never is, or has, this text, and the remedy; ("", "") for one that may be."""
    texts = [one.literal for one in given.items or (given,)]
    text = next((one for one in texts if isinstance(one, str) and one != one.lower()), "")
    if not (shape.lower and text):
        return "", ""
    return f"{shape.lower} are in lower case: never {text[:60]!r}", f"write {text.lower()[:60]!r}"


def no_word(name: str, shapes: Sequence[TypeShape]) -> str:
    """Why no word of a text has such a part, or ""."""
    text, part = shapes[0], shapes[-1].literal
    if not text.words or not isinstance(part, str) or (name == "matches" and bad_pattern(part)):
        return ""
    return "" if any(functions()[name](word, part) for word in text.words) else f"never {name}({part!r})"


def one_of(words: Sequence[str]) -> str:
    """All values of a text, for a person."""
    return "one of: " + ", ".join(word or '""' for word in words)


def other_default(shapes: Sequence[TypeShape]) -> str:
    where, _, otherwise = shapes
    member = where.members
    if "any" in (member.kind, otherwise.kind) or member.kind == otherwise.kind:
        return ""
    return f"the members are {member}, the value instead of one is {an(otherwise)}"


def bad_pattern(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return ""
    answer = functions()["matches"]("", pattern)
    return f"{pattern[:40]!r} is not a regular expression" if isinstance(answer, Exception) else ""


def an(shape: TypeShape) -> str:
    text = str(shape)
    return text if text.startswith("the ") or shape.label else f"{'an' if text[0] in 'aio' else 'a'} {text}"
