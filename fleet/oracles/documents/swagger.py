"""A description in Swagger 2.0, in the form of OpenAPI 3. Pure.

What it names stays where it is (`#/definitions/…`); parameters and answers that it refers to are put in
place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleet.oracles.documents.json_schema import resolved

METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
JSON = "application/json"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_OF_SCHEMA = (
    *("type", "format", "items", "default", "enum", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    "multipleOf",
)
"""What stands in a parameter itself, where OpenAPI 3 has a schema."""


def as_openapi(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same description as OpenAPI 3.0; its server is its base path on the host that it came from."""
    base, paths = document.get("basePath"), document.get("paths")
    made = {
        "openapi": "3.0.3",
        "info": {"title": "api", "version": "1"},
        "servers": [{"url": base if isinstance(base, str) and base.startswith("/") else "/"}],
        "paths": {
            str(path): dict(_item(item, document))
            for path, item in (paths.items() if isinstance(paths, dict) else ())
            if isinstance(item, dict)
        },
    }
    kept = ("definitions", "security", "securityDefinitions")
    return made | {key: document[key] for key in kept if key in document}


def _item(item: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    shared = _listed(item.get("parameters"), document)
    for method in METHODS:
        operation = item.get(method)
        if isinstance(operation, dict):
            own = _listed(operation.get("parameters"), document)
            named = {(one.get("in"), one.get("name")) for one in own}
            given = [one for one in shared if (one.get("in"), one.get("name")) not in named] + own
            yield method, _operation(operation, given, document)


def _listed(parameters: Any, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        one
        for said in (parameters if isinstance(parameters, list) else ())
        if (one := resolved(said, document)).get("name") or one.get("in") == "body"
    ]


def _operation(
    operation: Mapping[str, Any], given: list[Mapping[str, Any]], document: Mapping[str, Any]
) -> dict[str, Any]:
    plain = [_parameter(one) for one in given if one.get("in") in ("query", "path", "header")]
    takes = _kinds(operation, document, "consumes")
    body = next((one for one in given if one.get("in") == "body"), None)
    fields = [one for one in given if one.get("in") == "formData"]
    made = {key: value for key, value in operation.items() if key in ("summary", "description", "security")}
    made |= {"parameters": plain} if plain else {}
    if body is not None:
        content = {kind: {"schema": body.get("schema", {})} for kind in takes}
        made["requestBody"] = {"required": body.get("required") is True, "content": content}
    elif fields:
        kind = next((one for one in FORMS if one in takes), FORMS[0])
        needed = [str(one["name"]) for one in fields if one.get("required") is True]
        form = {"type": "object", "properties": {str(one["name"]): _schema(one) for one in fields}}
        form |= {"required": needed} if needed else {}
        made["requestBody"] = {"content": {kind: {"schema": form}}}
    answers = operation.get("responses")
    kinds = _kinds(operation, document, "produces")
    made["responses"] = {
        str(status): _answer(resolved(said, document), kinds)
        for status, said in (answers.items() if isinstance(answers, dict) else ())
    }
    return made


def _kinds(operation: Mapping[str, Any], document: Mapping[str, Any], word: str) -> list[str]:
    said = operation.get(word, document.get(word))
    known = [one.lower() for one in said if isinstance(one, str)] if isinstance(said, list) else []
    return known or [JSON if word == "consumes" else "*/*"]


def _parameter(one: Mapping[str, Any]) -> dict[str, Any]:
    made = {"name": str(one["name"]), "in": one["in"], "schema": _schema(one)}
    made |= {"required": True} if one.get("required") is True or one["in"] == "path" else {}
    if one.get("type") == "array" and one["in"] == "query":
        made["explode"] = one.get("collectionFormat") == "multi"
    return made


def _schema(one: Mapping[str, Any]) -> dict[str, Any]:
    if one.get("type") == "file":
        return {"type": "string", "format": "binary"}
    return {key: one[key] for key in _OF_SCHEMA if key in one}


def _answer(said: Mapping[str, Any], kinds: list[str]) -> dict[str, Any]:
    shown = {"description": str(said.get("description", ""))[:400]}
    if not isinstance(said.get("schema"), dict):
        return shown
    return shown | {"content": {kind: {"schema": said["schema"]} for kind in kinds}}
