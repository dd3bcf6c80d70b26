"""A description of an API, read as a stranger's: bounded, local, without what is costly to generate. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.oracles.documents import worded
from fleet.oracles.documents.api_document import api_document
from fleet.oracles.documents.openapi import operations
from sandbox.pages.condensed import OPERATIONS

DEPTH = 40
MAX_OPERATIONS = 60
MAX_COUNTED = 100_000
MAX_COUNT = 64
"""Largest least length or number that a value is made for; a higher one is left out."""
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
    if not isinstance(document.get("paths"), dict):
        return "a description without paths"
    try:
        safe = _safe(document, DEPTH)
    except ValueError as error:
        return str(error)
    assert isinstance(safe, dict)
    found = [one for one in operations(safe) if one.method != "DELETE"]  # which never is asked
    said = document.get(OPERATIONS)  # by what a condensed description had
    count = said if type(said) is int and len(found) < said < MAX_COUNTED else len(found)
    kept: dict[str, dict[str, Any]] = {}
    for one in found[:MAX_OPERATIONS]:
        shared = {"parameters": one.shared} if one.shared else {}
        kept.setdefault(one.path, shared)[one.method.lower()] = one.raw
    info = {"title": "api", "version": "1"}
    generated = safe | {"info": info, "paths": kept, "servers": [{"url": "/"}]}
    return ApiDescription(generated, tuple(one.where for one in found[:MAX_OPERATIONS]), document, count)


def _safe(value: object, left: int, *, named: bool = False) -> object:
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
        if named
        or not (key in _LEFT_OUT or (key in _COUNTS and isinstance(inner, int) and inner > MAX_COUNT))
    }
