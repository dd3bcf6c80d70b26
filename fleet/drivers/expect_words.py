"""What is said of an expectation that cannot be decided: operators, literals and types in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fleet.drivers.expect import functions
from fleet.drivers.expect_shapes import BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT, TypeShape

SAME = (
    'make both sides one type: 200 is an int, 200.0 a double, "200" a string; '
    "int(), double() and string() convert"
)
OPERATORS: Mapping[str, str] = MappingProxyType(
    dict(
        zip(
            ["lt", "le", "gt", "ge", "eq", "ne", "in", "add", "sub", "mul", "div", "mod", "not", "neg"],
            ["<", "<=", ">", ">=", "==", "!=", "in", "+", "-", "*", "/", "%", "!", "-"],
            strict=True,
        )
    )
)
"""Operators by their names in the library's grammar."""
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
