"""The description of an API that a text is: OpenAPI 3 or Swagger 2.0, in JSON or YAML, as OpenAPI 3. Pure.

The text is a stranger's. YAML is read event by event, by the parser that is not in C: no tag makes an object,
and an alias costs each time what it stands for, so neither nesting nor aliases of aliases make a small text
large.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from fleet.oracles.documents import graphql
from fleet.oracles.documents.swagger import as_openapi
from sandbox import strict_json
from sandbox.pages.condensed import IN_YAML
from sandbox.tools.qa_fetch import LONGEST

MAX_VALUES = 20_000
DEPTH = 60
"""Levels of a text in YAML."""
_IN_JSON = re.compile(r"[{,]\s{0,40}\"(?:openapi|swagger)\"\s{0,8}:\s{0,8}\"?[0-9]")
_FENCE = "```"
"""A document in Markdown that shows a description is none."""
_NULL, _BOOL = ("", "~", "null", "Null", "NULL"), {"true": True, "false": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:[eE][-+]?[0-9]{1,2})?", re.ASCII)
"""Scalars of YAML 1.2's core schema, of a length that is exact; anything else is a text."""


def is_description(text: str) -> bool:
    """Whether a text says that it is a description, readable or not."""
    if text.lstrip("\ufeff \t\r\n")[:1] == "{":
        return _IN_JSON.search(text) is not None
    return text.lstrip()[:1] != "<" and _FENCE not in text and IN_YAML.search(text) is not None


def api_document(text: str) -> Mapping[str, Any] | str:
    """The description, in the form of OpenAPI 3; or why the text is none that can be read. Not to be changed:
    it is kept."""
    document, why = _loaded(text)
    if why:
        return why
    if not isinstance(document, dict) or not {"openapi", "swagger"} & set(document):
        return "not an OpenAPI 3 description"
    return document


@functools.lru_cache(maxsize=8)
def _loaded(text: str) -> tuple[Any, str]:
    """The document, or why there is none."""
    try:
        found = strict_json.loads(text, values=MAX_VALUES)
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "[", "<") or not is_description(text):
            return None, f"not a description in JSON: {error}"
        if len(text) >= LONGEST:
            return None, f"a description in YAML of more than {LONGEST} characters"
        try:
            found = _of_yaml(text)
        except (yaml.YAMLError, ValueError) as fault:
            return None, f"not a description in YAML: {getattr(fault, 'problem', None) or fault}"
    if graphql.is_introspection(found):
        return graphql.as_openapi(found), ""
    old = isinstance(found, dict) and "openapi" not in found and str(found.get("swagger")).startswith("2.")
    return (as_openapi(found) if old else found), ""


def _of_yaml(text: str) -> object:
    """The first document of a text; ValueError for one that is too large or too deep."""
    found = _YamlReader(iter(yaml.parse(text, Loader=yaml.SafeLoader))).document()
    waiting = [(found, DEPTH)]
    while waiting:  # aliases may stand deeper than what they name
        one, left = waiting.pop()
        if left == 0:
            raise ValueError(f"nested deeper than {DEPTH}")
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting.extend((each, left - 1) for each in inner)
    return found


class _YamlReader:
    """Builds values from events, `MAX_VALUES` of them at most, aliases spelled out."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events, self._left = events, MAX_VALUES
        self._anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> object:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                return self._value(next(self._events), DEPTH)
        raise ValueError("empty")

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise ValueError(f"more than {MAX_VALUES} values")

    def _value(self, event: yaml.Event, depth: int) -> object:
        before = self._left
        self._spend(1)
        if depth == 0:
            raise ValueError(f"nested deeper than {DEPTH}")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:  # also one that stands inside what it names
                raise ValueError("an alias of nothing before it")
            value, cost = self._anchors[event.anchor]
            self._spend(cost)
            return value
        made: Any
        if isinstance(event, yaml.ScalarEvent):
            made = _scalar(event.value) if event.implicit[0] else event.value
        elif isinstance(event, yaml.SequenceStartEvent):
            made = []
            while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                made.append(self._value(inner, depth - 1))
        else:
            made = self._table(depth)
        if event.anchor:
            self._anchors[event.anchor] = made, before - self._left
        return made

    def _table(self, depth: int) -> dict[str, Any]:
        made, merged = dict[str, Any](), dict[str, Any]()
        while not isinstance(key := next(self._events), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent | yaml.AliasEvent):
                raise ValueError("a key that is not a text")
            name = key.value if isinstance(key, yaml.ScalarEvent) else self._value(key, depth - 1)
            value = self._value(next(self._events), depth - 1)
            if isinstance(key, yaml.ScalarEvent) and key.anchor:
                self._anchors[key.anchor] = name, 1
            if name == "<<" and key.implicit[0]:
                for one in value if isinstance(value, list) else [value]:
                    merged = (one if isinstance(one, dict) else {}) | merged
            else:
                made[str(name)] = value
        return merged | made


def _scalar(text: str) -> object:
    if text in _NULL:
        return None
    if (said := _BOOL.get(text.lower())) is not None and text in (text.lower(), text.title(), text.upper()):
        return said
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
