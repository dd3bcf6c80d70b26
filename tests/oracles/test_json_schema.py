"""A value that certainly breaks its schema, what leaves room, and schemas that cost too much."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.oracles.documents.json_schema import misfits

MOSS: dict[str, Any] = {"schemas": {"Moss": {"type": "object", "required": ["id"]}}}


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"type": "integer"}, "7", [("", "a value of type integer")]),
        ({"type": "integer"}, 7.0, []),
        ({"type": "integer"}, True, [("", "a value of type integer")]),
        ({"type": "string", "nullable": True}, None, []),
        ({"type": "string", "nullable": True}, 1, [("", "a value of type string/null")]),
        ({"enum": ["a"]}, "b", [("", "one of the listed values")]),
        ({"enum": ["a"], "nullable": True}, None, []),
        ({"const": 2}, 3, [("", "the stated value")]),
        ({"minimum": 1, "maximum": 9}, 0, [("", "at least 1")]),
        ({"minimum": 1, "maximum": 9}, 10, [("", "at most 9")]),
        ({"minimum": 1, "maximum": 9}, 9, []),
        ({"maxItems": 1}, [1, 2], [("", "at most 1 elements")]),
        ({"required": ["a", "b"]}, {"a": 1}, [("/b", "a required field")]),
        ({"required": ["a"], "properties": {"a": {"writeOnly": True}}}, {}, []),
        ({"$ref": "#/schemas/Moss"}, {}, [("/id", "a required field")]),
        ({"allOf": [{"$ref": "#/schemas/Moss"}]}, {}, [("/id", "a required field")]),
        (
            {"items": {"$ref": "#/schemas/Moss"}},
            [{"id": 1}, {}, 3],
            [("/*/id", "a required field"), ("/*", "a value of type object")],
        ),
        ({"type": "array", "required": ["a"]}, {}, [("", "a value of type array")]),
    ],
)
def test_what_breaks_its_schema(schema: Any, value: Any, found: list[tuple[str, str]]) -> None:
    assert list(misfits(value, schema, MOSS)) == found


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "oneOf": [{}]},
        {"type": "file"},
        {"type": [["string"]]},
        {"$ref": "#/schemas/None"},
        {"$ref": "other.json#/Moss"},
        {
            "type": 5,
            "enum": 5,
            "minimum": "x",
            "maxItems": True,
            "items": 5,
            "properties": 5,
            "allOf": 5,
            "$id": 7,
        },
        {"pattern": "(a+)+$", "format": "date", "minLength": 99},
        {"required": [5, ["a"]]},
        {"properties": {"a": False}, "allOf": [False], "items": False},
        False,
        "x",
        None,
    ],
)
@pytest.mark.parametrize("value", [1, "a" * 60 + "!", [1], {"a": 1}, None])
def test_where_a_schema_leaves_room_nothing_is_judged(schema: Any, value: Any) -> None:
    assert list(misfits(value, schema, MOSS)) == []


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"n": value}
    return value


@pytest.mark.parametrize(
    "schemas",
    [
        {"a": {"$ref": "#/schemas/b"}, "b": {"$ref": "#/schemas/a"}},
        {"a": {"allOf": [{"$ref": "#/schemas/a"}]}},
        {"a": {"allOf": [{"$ref": "#/schemas/a"}, *[{"type": "object"}] * 9_000]}},
        {"a": {"properties": {"n": {"$ref": "#/schemas/a"}}}},
        {f"{'a' * at}": {"allOf": [{"$ref": f"#/schemas/{'a' * (at + 1)}"}] * 2} for at in range(1, 60)},
    ],
    ids=["cycle", "itself", "wide", "deep", "doubled"],
)
def test_a_schema_that_costs_too_much_is_left(schemas: Any) -> None:
    assert list(misfits(deep(500), {"$ref": "#/schemas/a"}, {"schemas": schemas})) == []
