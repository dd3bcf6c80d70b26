"""Whether a JSON value certainly breaks its schema. Pure, and silent wherever a schema leaves room.

Only `type`, `required`, `properties`, `items`, `enum` and `allOf` are judged, in the meaning that OpenAPI 3.0
and 3.1 share; an alternative (`oneOf`, `anyOf`, `not`, `if`) or an unknown reference says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DEPTH = 8
ITEMS = 20
"""Most elements of an array that are looked at."""
SCHEMAS = 5_000
"""Most schemas that one value is held against: by `allOf`, a small document can name very many."""
_ROOM = ("oneOf", "anyOf", "not", "if", "$dynamicRef", "$recursiveRef")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
    "integer": (int, float),
    "number": (int, float),
}


def resolved(schema: Any, document: Mapping[str, Any]) -> Mapping[str, Any]:
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


def body_fields(operation: Any, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schemas of the fields of an operation's JSON body, by name; empty where it says nothing of them."""
    found: dict[str, Any] = {}
    for part in _parts(_body(operation, document), document):
        properties = part.get("properties")
        found |= properties if isinstance(properties, dict) else {}
    return found


def closed_body(operation: Any, document: Mapping[str, Any]) -> bool:
    """Whether an operation's JSON body has the fields of `body_fields` alone, as far as its schema says."""
    return not any(
        one.get("additionalProperties") not in (None, False)
        or "patternProperties" in one
        or any(word in one for word in _ROOM)
        for one in _parts(_body(operation, document), document)
    )


def _body(operation: Any, document: Mapping[str, Any]) -> Any:
    known = operation if isinstance(operation, dict) else {}
    content = resolved(known.get("requestBody"), document).get("content")
    media = content.get("application/json") if isinstance(content, dict) else None
    return media.get("schema") if isinstance(media, dict) else None


def _parts(schema: Any, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A schema with those that it puts together by `allOf`, `ITEMS` of them at most."""
    found, waiting = list[Mapping[str, Any]](), [schema]
    while waiting and len(found) < ITEMS:
        found.append(resolved(waiting.pop(0), document))
        inner = found[-1].get("allOf")
        waiting += inner[:ITEMS] if isinstance(inner, list) else ()
    return found


def misfits(value: Any, schema: Any, document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each place where the value certainly breaks the schema: `/items/*/id`, and what was expected there."""
    yield from _Held(document).misfits(value, schema)


@dataclass(slots=True)
class _Held:
    """One value that is held against schemas of a document, at most `left` more."""

    document: Mapping[str, Any]
    left: int = SCHEMAS

    def misfits(self, value: Any, schema: Any, at: str = "", depth: int = DEPTH) -> Iterator[tuple[str, str]]:
        schema = resolved(schema, self.document)
        self.left -= 1
        if depth == 0 or self.left < 0 or any(word in schema for word in _ROOM):
            return
        if not _typed(value, schema):
            yield at, f"a value of type {'/'.join(_names(schema))}"
            return
        choices = schema.get("enum")
        if isinstance(choices, list) and choices and value not in choices and not _null(value, schema):
            yield at, "one of the listed values"
            return
        for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
            if self.left > 0:
                yield from self.misfits(value, part, at, depth - 1)
        if isinstance(value, dict):
            required, fields = schema.get("required"), schema.get("properties")
            fields = fields if isinstance(fields, dict) else {}
            for name in required if isinstance(required, list) else ():
                absent = isinstance(name, str) and name not in value
                if absent and not _one_way(fields.get(name), self.document):
                    yield f"{at}/{name}", "a required field"
            for name, inner in fields.items():
                if name in value:
                    yield from self.misfits(value[name], inner, f"{at}/{name}", depth - 1)
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            for one in value[:ITEMS]:
                yield from self.misfits(one, schema["items"], f"{at}/*", depth - 1)


def _names(schema: Mapping[str, Any]) -> list[str]:
    said = schema.get("type")
    return [one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)]


def _one_way(schema: Any, document: Mapping[str, Any]) -> bool:
    """Whether a field stands in requests or in answers only."""
    said = resolved(schema, document)
    return said.get("readOnly") is True or said.get("writeOnly") is True


def _null(value: Any, schema: Mapping[str, Any]) -> bool:
    return value is None and True in (schema.get("nullable"), schema.get("x-nullable"))


def _typed(value: Any, schema: Mapping[str, Any]) -> bool:
    names = _names(schema)
    if not names or any(name not in _TYPES for name in names) or _null(value, schema):
        return True
    return any(_is(value, name) for name in names)


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name != "boolean":
        return False
    whole = name != "integer" or not isinstance(value, float) or value.is_integer()
    return isinstance(value, _TYPES[name]) and whole
