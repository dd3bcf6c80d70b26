"""The operations of an OpenAPI or Swagger description in JSON, as routes and as bodies to send. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from sandbox.pages.markup import MAX_FIELDS, Form

METHODS = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS"
_SENDS = ("post", "put", "patch")
_SAMPLES = {"string": "moss", "integer": 1, "number": 1, "boolean": True}


def described(text: str) -> tuple[list[str], list[Form]]:
    """Routes, and bodies of those that need no credentials; none of any other text."""
    if '"paths"' not in text or text.lstrip()[:1] != "{":
        return [], []
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError):
        return [], []
    routes, forms = list[str](), list[Form]()
    base = _base(spec)
    for path, verb, operation, shared in _operations(spec):
        given = [*_listed(shared), *_listed(operation.get("parameters"))]
        routes.append(f"{verb.upper()} {base}{path}{_query(given)}")
        fields = _fields(operation, spec) if verb.lower() in _SENDS else {}
        open_to_all = not operation.get("security", spec.get("security")) and not _enters(fields)
        if fields and "{" not in path and open_to_all:
            forms.append(Form(verb.upper(), f"{base}{path}", fields, True))
    return routes, forms


def _operations(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any], object]]:
    paths = spec.get("paths")
    for path, item in paths.items() if isinstance(paths, dict) else ():
        for verb, operation in item.items() if isinstance(item, dict) else ():
            if verb.upper() in METHODS.split("|") and isinstance(operation, dict):
                yield path, verb, operation, item.get("parameters")


def _enters(fields: Mapping[str, str]) -> bool:
    """Whether it makes an account or a session: each try would make one more."""
    return any("pass" in name.lower() or name.lower() in ("pwd", "pin") for name in fields)


def _base(spec: Mapping[str, Any]) -> str:
    """What all paths are below: the first server, or the base path of Swagger."""
    first = next(iter(_listed(spec.get("servers"))), {})
    said = first.get("url") or spec.get("basePath") or ""
    base = said.rstrip("/") if isinstance(said, str) and "{" not in said else ""
    try:
        below = base.startswith(("/", "http://", "https://")) and urlsplit(base).query == ""
    except ValueError:
        return ""
    return base if below else ""


def _fields(operation: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a JSON body, each with a value that fits, as JSON; {} where one has none."""
    body = _resolved(operation.get("requestBody"), spec)
    content = body.get("content")
    media = content.get("application/json") if isinstance(content, dict) else None
    schema = _resolved(media.get("schema") if isinstance(media, dict) else None, spec)
    properties, made = schema.get("properties"), dict[str, str]()
    for name, said in list(properties.items())[:MAX_FIELDS] if isinstance(properties, dict) else ():
        value = _sample(_resolved(said, spec))
        if value is not None:
            made[str(name)] = json.dumps(value)
        elif name in (schema.get("required") or ()):
            return {}
    return made


def _sample(schema: Mapping[str, Any]) -> object:
    for known in ("example", "default", "const"):
        if isinstance(schema.get(known), str | int | float | bool):
            return schema[known]
    choices, kind = schema.get("enum"), str(schema.get("type"))
    if isinstance(choices, list) and choices:
        return choices[0]
    least = schema.get("minimum")
    return least if kind in ("integer", "number") and isinstance(least, int) else _SAMPLES.get(kind)


def _resolved(said: object, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a part of a description says, by way of one reference within it."""
    if isinstance(said, dict) and isinstance(said.get("$ref"), str):
        found: Any = spec
        for step in said["$ref"].removeprefix("#/").split("/")[:8]:
            found = found.get(step) if isinstance(found, dict) else None
        said = found
    return said if isinstance(said, dict) else {}


def _listed(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _query(parameters: Iterable[dict[str, Any]]) -> str:
    """The query of an operation in a document's way: alternatives, an example, or the name in brackets."""
    pairs = []
    for one in parameters:
        if one.get("in") != "query":
            continue
        schema = one.get("schema") if isinstance(one.get("schema"), dict) else {}
        known = one | (schema or {})
        choice = known.get("enum")
        sample = known.get("example", known.get("default"))
        value = "|".join(map(str, choice)) if isinstance(choice, list) else sample
        plain = isinstance(value, str | int | float) and value != ""
        pairs.append(f"{one.get('name')}={value if plain else '<' + str(one.get('name')) + '>'}")
    return "?" + "&".join(pairs) if pairs else ""
