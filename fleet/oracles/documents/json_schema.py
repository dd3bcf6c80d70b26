"""Whether a JSON value certainly breaks its schema. Pure, and silent wherever a schema leaves room.

`jsonschema` judges the keywords whose meaning OpenAPI 3.0 and 3.1 share. What reaches it is well-formed and
local, without the keywords that leave room: an alternative (`oneOf`, `anyOf`, `not`, `if`), an unknown type
or reference says nothing. A pattern is never run: it is a program of the stranger's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

DEPTH = 8
"""References that lead from one to the next."""
ITEMS = 20
"""Most elements of an array that are looked at."""
SCHEMAS = 5_000
"""Most schemas that one value is held against: by `allOf`, a small document can name very many."""
REQUIRED = "a required field"
ROOM = ("oneOf", "anyOf", "not", "if", "$dynamicRef", "$recursiveRef")
_TYPES = frozenset({"string", "boolean", "null", "object", "array", "integer", "number"})
_EXPECTED = {
    "type": "a value of type {}",
    "enum": "one of the listed values",
    "const": "the stated value",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} elements",
    "maxItems": "at most {} elements",
    "required": REQUIRED,
}
"""Keywords that say something of a value, in the order in which they are judged."""
_INNER = ("allOf", "properties", "items")


class _Validator(Protocol):
    """What is used of the library's, which has no types."""

    def descend(self, instance: object, schema: object, path: int) -> Iterator[Exception]: ...


class _Enough(Exception):
    """As many schemas were looked at as one value may cost."""


def resolved(schema: object, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its own reference followed, as far as it is local; empty for anything else."""
    for _ in range(DEPTH):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str):
            return schema if isinstance(schema, dict) else {}
        schema = document if reference.startswith("#/") else None
        for part in reference[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, dict) else None
    return {}


def misfits(value: object, schema: object, document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each place where the value certainly breaks the schema: `/items/*/id`, and what was expected there."""
    from jsonschema.validators import Draft202012Validator, create  # 0.1 s, and only of a described API

    left = SCHEMAS

    def judged(said: object) -> list[tuple[str, Any]]:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Enough
        return list(_judged(resolved(said, document), document))

    known = {word: Draft202012Validator.VALIDATORS[word] for word in (*_EXPECTED, *_INNER)}
    judge = create(
        {},
        validators=known | {"required": _required, "items": _items},
        type_checker=Draft202012Validator.TYPE_CHECKER,
        applicable_validators=judged,
    )
    found = list[tuple[tuple[str | int, ...], str, Any]]()
    with contextlib.suppress(_Enough, RecursionError):  # what was found until then holds
        for one in judge(schema if isinstance(schema, dict) else {}).iter_errors(value):
            found.append((tuple(one.absolute_path), one.validator, one.validator_value))
    other = {path for path, word, _ in found if word == "type"}  # what it holds means nothing there
    for path, word, shown in found:
        if not any(path[:end] in other for end in range(len(path) + (word != "type"))):
            place = "".join("/*" if isinstance(step, int) else f"/{step}" for step in path)
            yield place, _EXPECTED[word].format("/".join(shown) if word == "type" else shown)


def _judged(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keywords of a schema that leave no room, each with a value of the form that it must have."""
    if any(word in schema for word in ROOM):
        return
    null = True in (schema.get("nullable"), schema.get("x-nullable"))
    names = schema.get("type")
    names = [names] if isinstance(names, str) else names
    if isinstance(names, list) and names and all(isinstance(one, str) and one in _TYPES for one in names):
        yield "type", [*names, "null"] if null else names
    choices, fields = schema.get("enum"), schema.get("properties")
    if isinstance(choices, list) and choices:
        yield "enum", [*choices, None] if null else choices
    if "const" in schema and not null:
        yield "const", schema["const"]
    for word in ("minimum", "maximum", "minItems", "maxItems"):
        if type(limit := schema.get(word)) in (int, float):
            yield word, limit
    fields = (
        {at: one for at, one in fields.items() if isinstance(one, dict)} if isinstance(fields, dict) else {}
    )
    if isinstance(needed := schema.get("required"), list):
        sides = {at: resolved(one, document) for at, one in fields.items() if at in needed}
        one_way = {at for at, one in sides.items() if True in (one.get("readOnly"), one.get("writeOnly"))}
        yield "required", [one for one in needed if isinstance(one, str) and one not in one_way]
    if isinstance(parts := schema.get("allOf"), list):
        yield "allOf", [one for one in parts if isinstance(one, dict)]
    yield "properties", fields
    if isinstance(inner := schema.get("items"), dict):
        yield "items", inner


def _required(_judge: object, names: Sequence[str], value: object, _schema: object) -> Iterator[Exception]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, dict):
        yield from (ValidationError(REQUIRED, path=(name,)) for name in names if name not in value)


def _items(judge: _Validator, inner: object, value: object, _schema: object) -> Iterator[Exception]:
    for at, one in enumerate(value[:ITEMS] if isinstance(value, list) else ()):
        yield from judge.descend(one, inner, path=at)
