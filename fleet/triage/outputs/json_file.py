"""`worklist.json`, its JSON Schema, and the reader of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fleet.errors import ConfigError
from fleet.triage.items.worklist import SCHEMA, WorklistItem, as_json
from fleet.triage.outputs.document import WorklistDocument, WorklistHeader, document

ORDER = ("schema", "digest", *(one.name for one in fields(WorklistHeader)), "items", "closed")


def to_json(items: Sequence[WorklistItem], header: WorklistHeader, known: str = "") -> bytes:
    """UTF-8 that ends with a newline, keys in a fixed order: equal lists, equal bytes."""
    made = document(items, header, known)
    return dump({key: getattr(made, key) for key in ORDER})


def dump(value: object) -> bytes:
    """JSON for a file, of dataclasses too."""
    return as_json(value, 1) + b"\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of `worklist.json` (draft 2020-12), made from the types."""
    made = _document().json_schema(mode="serialization")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:qa-fleet:worklist:{SCHEMA}",
        "title": f"worklist.json, schema {SCHEMA}",
    }
    made["required"] = list(ORDER)
    made["properties"]["schema"] = {"const": SCHEMA}
    return head | {key: value for key, value in made.items() if key not in head}


def read_document(text: str) -> WorklistDocument:
    """The document as written by `to_json`; ConfigError for another schema or a damaged file."""
    try:
        read = _document().validate_json(text)
    except ValidationError as error:
        why = f"worklist.json: {error.errors()[0]['msg']} at {'.'.join(map(str, error.errors()[0]['loc']))}"
        raise ConfigError(why, remedy="fleet items rebuild") from None
    if read.schema != SCHEMA:
        raise ConfigError(
            f"worklist.json: schema {read.schema}, expected {SCHEMA}", remedy="fleet items rebuild"
        )
    return read


@cache
def _document() -> TypeAdapter[WorklistDocument]:
    return TypeAdapter(WorklistDocument)
