"""Whether a JSON value certainly breaks its schema. Pure, and silent wherever a schema leaves room.

Only `type`, `required`, `properties`, `items`, `enum` and `allOf` are judged, in the meaning that OpenAPI 3.0
and 3.1 share; an alternative (`oneOf`, `anyOf`, `not`, `if`) or an unknown reference says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DEPTH = 8
ITEMS = 20
"""Most elements of an array that are looked at."""
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


def body_fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schemas of the fields of an operation's JSON body, by name; empty where it says nothing of them."""
    content = resolved(operation.get("requestBody"), document).get("content")
    media = content.get("application/json") if isinstance(content, dict) else None
    schema = resolved(media.get("schema") if isinstance(media, dict) else None, document)
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def misfits(
    value: Any, schema: Any, document: Mapping[str, Any], at: str = "", depth: int = DEPTH
) -> Iterator[tuple[str, str]]:
    """Each place where the value certainly breaks the schema: `/items/*/id`, and what was expected there."""
    schema = resolved(schema, document)
    if depth == 0 or any(word in schema for word in _ROOM):
        return
    if not _typed(value, schema):
        yield at, f"a value of type {'/'.join(_names(schema))}"
        return
    choices = schema.get("enum")
    if isinstance(choices, list) and choices and value not in choices and not _null(value, schema):
        yield at, "one of the listed values"
        return
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        yield from misfits(value, part, document, at, depth - 1)
    if isinstance(value, dict):
        required, fields = schema.get("required"), schema.get("properties")
        fields = fields if isinstance(fields, dict) else {}
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in value and not _one_way(fields.get(name), document):
                yield f"{at}/{name}", "a required field"
        for name, inner in fields.items():
            if name in value:
                yield from misfits(value[name], inner, document, f"{at}/{name}", depth - 1)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for one in value[:ITEMS]:
            yield from misfits(one, schema["items"], document, f"{at}/*", depth - 1)


def _names(schema: Mapping[str, Any]) -> list[str]:
    said = schema.get("type")
    return [one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)]


def _one_way(schema: Any, document: Mapping[str, Any]) -> bool:
    """Whether a field stands in requests or in answers only."""
    said = resolved(schema, document)
    return said.get("readOnly") is True or said.get("writeOnly") is True


def _null(value: Any, schema: Mapping[str, Any]) -> bool:
    return value is None and schema.get("nullable") is True


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
