"""The description of an API that none is there for: what the scripts of a site's pages ask it. Pure.

Each request that was seen is an operation; its body has the fields that were sent, all of them needed. Paths
that only stand in a script are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fleet.drivers.explore.account.ways import role_of
from fleet.oracles.texts import parsed

MOST, WIDE, DEEP = 80, 40, 4
"""Operations, fields of a body, levels of it."""
FORM = "application/x-www-form-urlencoded"
_SAID = {"join": "Sign up", "enter": "Log in"}
_NUMBER = re.compile(r"\d{1,19}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_HOLE = re.compile(r"\$?\{[^{}]{0,60}\}")
_STATIC = re.compile(r"\.(?:css|m?js|map|png|jpe?g|gif|svg|ico|webp|woff2?|html?)$")


def learned(pages: Mapping[str, Iterable[Mapping[str, Any]]], paths: Iterable[str] = ()) -> dict[str, Any]:
    """A description by what pages asked their own site, by the page's path: method, path, body, body_type;
    and by paths of their scripts; {} where nothing was asked but pages."""
    found: dict[str, dict[str, Any]] = {}
    for page, calls in pages.items():
        for call in calls:
            method, url = str(call.get("method", "")).lower(), urlsplit(str(call.get("url", "")))
            body, kind = str(call.get("body", "")), str(call.get("body_type", "")).partition(";")[0]
            if method in ("get", "post", "put", "patch") and not _STATIC.search(url.path):
                path, parameters = _template(url.path)
                parameters += [_parameter(name, "query") for name, _ in parse_qsl(url.query)[:WIDE]]
                one: dict[str, Any] = {"parameters": parameters, "responses": {}}
                one |= _sent(body, kind) if method != "get" else {}
                one |= {"summary": _SAID[role]} if (role := role_of(page)) and _has_phrase(one) else {}
                _keep(found, path, method, one)
    if not any(how != "get" for ways in found.values() for how in ways):
        return {}
    for text in paths:
        path, parameters = _template(text.partition("?")[0])
        if path.startswith("/") and not _STATIC.search(path):
            _keep(found, path, "get", {"parameters": parameters, "responses": {}})
    return {"openapi": "3.1.0", "info": {"title": "Learned", "version": "1"}, "paths": found}


def graphql_places(pages: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[str]:
    """The URLs that were asked a document of GraphQL."""
    asked = (call for calls in pages.values() for call in calls if call.get("method") == "POST")
    found = [(str(call.get("url", "")), parsed(str(call.get("body", "")))) for call in asked]
    return list(dict.fromkeys(url for url, body in found if isinstance(body, dict) and _is_document(body)))


def _is_document(body: Mapping[str, Any]) -> bool:
    return isinstance(body.get("query"), str) and "{" in body["query"]


def _keep(found: dict[str, dict[str, Any]], path: str, method: str, one: dict[str, Any]) -> None:
    if len(found) < MOST or path in found:
        found.setdefault(path, {}).setdefault(method, one)


def _template(path: str) -> tuple[str, list[dict[str, Any]]]:
    """A path with a name for each value in it, and these names as parameters."""
    parts, names = list[str](), list[str]()
    for part in path.split("/"):
        if _NUMBER.fullmatch(part) or _HOLE.fullmatch(part):
            names.append("id" if not names else f"id{len(names)}")
            parts.append(f"{{{names[-1]}}}")
        else:
            parts.append(part)
    return "/".join(parts), [_parameter(name, "path") for name in names]


def _parameter(name: str, where: str) -> dict[str, Any]:
    return {"name": name[:60], "in": where, "required": where == "path", "schema": {"type": "string"}}


def _sent(body: str, kind: str) -> dict[str, Any]:
    """The body as a description has it; {} for none, or for one that is no object and no form."""
    given = dict(parse_qsl(body, keep_blank_values=True)) if kind == FORM else parsed(body)
    if not isinstance(given, dict) or not given or _is_document(given):
        return {}
    media = FORM if kind == FORM else "application/json"
    return {"requestBody": {"required": True, "content": {media: {"schema": _schema(given, DEEP)}}}}


def _schema(value: Any, left: int) -> dict[str, Any]:  # noqa: ANN401  any JSON
    if isinstance(value, dict) and left:
        inner = {str(name)[:60]: _schema(one, left - 1) for name, one in list(value.items())[:WIDE]}
        return {"type": "object", "properties": inner, "required": [*inner]}
    if isinstance(value, list) and left:
        return {"type": "array", "items": _schema(value[0], left - 1) if value else {}}
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"))
    return {"type": next((name for kind, name in kinds if isinstance(value, kind)), "string")}


def _has_phrase(one: Mapping[str, Any]) -> bool:
    return bool(re.search(r"(?i)pass|pwd|secret", str(one.get("requestBody", ""))))
