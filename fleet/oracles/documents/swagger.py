"""A description in Swagger 2.0, in the form of OpenAPI 3. Pure.

What it names stays where it is (`#/definitions/…`); parameters and answers that it refers to are put in
place.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    made: dict[str, dict[str, Any]] = {}
    for path, item in paths.items() if isinstance(paths, dict) else ():
        if not isinstance(item, dict):
            continue
        made[str(path)], shared = {}, _listed(item.get("parameters"), document)
        for method in METHODS:
            if isinstance(operation := item.get(method), dict):
                own = _listed(operation.get("parameters"), document)
                named = {(one.get("in"), one.get("name")) for one in own}
                given = [one for one in shared if (one.get("in"), one.get("name")) not in named] + own
                made[str(path)][method] = _operation(operation, given, document)
    kept = ("definitions", "security", "securityDefinitions")
    return {
        "openapi": "3.0.3",
        "info": {"title": "api", "version": "1"},
        "servers": [{"url": base if isinstance(base, str) and base.startswith("/") else "/"}],
        "paths": made,
        **{key: document[key] for key in kept if key in document},
    }


def _listed(parameters: object, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        one
        for said in (parameters if isinstance(parameters, list) else ())
        if (one := resolved(said, document)).get("name") or one.get("in") == "body"
    ]


def _operation(
    operation: Mapping[str, Any], given: list[Mapping[str, Any]], document: Mapping[str, Any]
) -> dict[str, Any]:
    plain = list[dict[str, Any]]()
    for one in given:
        if (where := one.get("in")) in ("query", "path", "header"):
            plain.append({"name": str(one["name"]), "in": where, "schema": _schema(one)})
            plain[-1] |= {"required": True} if one.get("required") is True or where == "path" else {}
            if one.get("type") == "array" and where == "query":
                plain[-1]["explode"] = one.get("collectionFormat") == "multi"
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
    made["responses"] = said = dict[str, Any]()
    for status, answer in answers.items() if isinstance(answers, dict) else ():
        one = resolved(answer, document)
        said[str(status)] = {"description": str(one.get("description", ""))[:400]}
        if isinstance(schema := one.get("schema"), dict):
            said[str(status)]["content"] = {kind: {"schema": schema} for kind in kinds}
    return made


def _kinds(operation: Mapping[str, Any], document: Mapping[str, Any], word: str) -> list[str]:
    said = operation.get(word, document.get(word))
    known = [one.lower() for one in said if isinstance(one, str)] if isinstance(said, list) else []
    return known or [JSON if word == "consumes" else "*/*"]


def _schema(one: Mapping[str, Any]) -> dict[str, Any]:
    if one.get("type") == "file":
        return {"type": "string", "format": "binary"}
    return {key: one[key] for key in _OF_SCHEMA if key in one}
