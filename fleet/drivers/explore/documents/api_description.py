"""A description of an API, read as a stranger's: bounded, local, without what is costly to generate. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.oracles.documents import worded
from fleet.oracles.documents.api_document import api_document
from fleet.oracles.documents.json_schema import resolved
from sandbox.pages.condensed import OPERATIONS

DEPTH = 40
MAX_OPERATIONS = 60
MAX_COUNTED = 100_000
MAX_COUNT = 64
"""Largest least length or number that a value is made for; a higher one is left out."""
METHODS = ("get", "head", "options", "post", "put", "patch")
"""DELETE never is asked."""
_COUNTS = frozenset({"minLength", "minItems", "minProperties"})
_LEFT_OUT = frozenset(
    ("pattern", "patternProperties", "propertyNames", "example", "examples", "links", "callbacks", "security")
)
"""A pattern is a program of the stranger's; the others are not needed."""
_NAMED = frozenset(
    (
        *("properties", "schemas", "responses", "parameters", "requestBodies", "headers", "paths", "$defs"),
        "definitions",
    )
)
"""Below these stand names that the author chose."""


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """A description that may be generated from; its first operations: `METHOD template`; the `whole`."""

    document: Mapping[str, Any]
    operations: tuple[str, ...]
    whole: Mapping[str, Any]
    count: int
    """Operations that it has."""


def read_description(text: str, host: str = "") -> ApiDescription | str:
    """The description that a text is, in JSON, YAML or words, or why it cannot be used; `host` is its
    own, with the scheme."""
    document = api_document(text)
    if isinstance(document, str):
        words = worded.in_words(text, host)
        if words is None:
            return document
        document = words
    if not str(document.get("openapi", "")).startswith(("3.0", "3.1")):
        return "neither OpenAPI 3.0 or 3.1, nor Swagger 2.0"
    paths = document.get("paths")
    if not isinstance(paths, dict):
        return "a description without paths"
    try:
        safe = _safe(document, DEPTH)
    except ValueError as error:
        return str(error)
    safe["paths"] = {at: dict(resolved(item, safe)) for at, item in safe["paths"].items()}
    found = tuple(_operations(safe["paths"]))
    count, found = max(len(found), _count(document)), found[:MAX_OPERATIONS]
    kept: dict[str, dict[str, Any]] = {}
    for one in found:
        method, _, template = one.partition(" ")
        item = safe["paths"][template]
        shared = {"parameters": item["parameters"]} if isinstance(item.get("parameters"), list) else {}
        kept.setdefault(template, shared)[method.lower()] = item[method.lower()]
    info = {"title": "api", "version": "1"}
    generated = safe | {"info": info, "paths": kept, "servers": [{"url": "/"}]}
    return ApiDescription(generated, found, document, count)


def _count(document: Mapping[str, Any]) -> int:
    """The number of operations that a condensed description had."""
    said = document.get(OPERATIONS)
    return said if type(said) is int and 0 < said < MAX_COUNTED else 0


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for template, item in paths.items():
        for method in METHODS:
            if isinstance(item, dict) and isinstance(item.get(method), dict) and template.startswith("/"):
                yield f"{method.upper()} {template}"


def _safe(value: Any, left: int, *, named: bool = False) -> Any:
    """The value without what is left out; ValueError for a reference elsewhere, or for too deep nesting."""
    if left == 0:
        raise ValueError(f"a description nested deeper than {DEPTH}")
    if isinstance(value, list):
        return [_safe(one, left - 1) for one in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#/"):
        raise ValueError("a description with a reference to another document")
    return {
        key: _safe(inner, left - 1, named=key in _NAMED and not named)
        for key, inner in value.items()
        if named or not _costly(key, inner)
    }


def _costly(key: str, value: Any) -> bool:
    return key in _LEFT_OUT or (key in _COUNTS and isinstance(value, int) and value > MAX_COUNT)
