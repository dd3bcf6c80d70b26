"""A description of an API, in OpenAPI or in words: a document that writes down calls, with bodies. Pure.

What words say is read into the form of OpenAPI. An example shows a body's fields and their types, no more: a
text of several words may be any text, one of a single word is kept as it is, as it may name something.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from fleet.oracles.documents.api_document import api_document
from fleet.oracles.documents.routes import DocumentedCall, documented
from fleet.oracles.texts import parsed, visible

AHEAD = 8
"""Lines after a call in which its body may follow."""
MOST = 60
_BODIES = frozenset({"POST", "PUT", "PATCH"})
JSON = "application/json"
_CURL_DATA = re.compile(
    r"(?<!\S)(-d|-F|--form|--data(?:-urlencode|-raw)?)[ =]{1,4}"
    r"""(?:'([^']{1,200})'|"([^"]{1,200})"|([^\s'"]{1,200}))"""
)
_KEY_HEADER = re.compile(r"(?i)\b(x-[\w-]{0,30}(?:key|token|session|auth)[\w-]{0,20})['\"`]?\s{0,4}:")
_BASIC = re.compile(r"(?i)\bhttp basic\b|\bbasic auth|curl[^\n]{0,80} (?:-u|--user) ")
_ANSWER = re.compile(
    r"(?i)\b(?:answers?|returns?|gives?|responds?|response|replies|yields|errors?)\b|→|->|=>"
)
_SAME = re.compile(r"(?i)\bsame (?:body|fields|json|object)\b")
_PAGE = re.compile(r"(?i)\A\s*<(?:!doctype html|html)\b")
_HOLE = re.compile(r"<([\w-]{1,40})>|\{([\w-]{1,40})\}|:([A-Za-z]\w{0,30})|([A-Z][A-Z_]{1,20})")
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,60}")
_BRACKETED = re.compile(r"[<{][^<>{}]{1,80}[>}]|[A-Z][A-Z_]+")


def description(text: str, host: str = "") -> Mapping[str, Any] | None:
    """The OpenAPI description that a text is or amounts to; None for a text that writes down no call.

    `host` (scheme and authority): of words only calls without a host, or of this one, are taken.
    """
    document = api_document(text)
    if not isinstance(document, str):
        return document
    return in_words(text, host) if parsed(text) is None else None


def in_words(text: str, host: str = "") -> Mapping[str, Any] | None:
    """What a text that is no JSON amounts to."""
    if text.lstrip()[:1] in ("{", "["):
        return None
    text = visible(text) if _PAGE.match(text) else text
    paths: dict[str, dict[str, Any]] = {}
    lines, last = text.splitlines(), (dict[str, Any](), JSON)
    for at, said in enumerate(lines):
        calls = documented(said)
        for call in calls[:4]:
            template = _template(call.path)
            if (
                (call.host and host and call.host != host)
                or len(paths) >= MOST
                or any(
                    one is not call and not one.exact and one.takes(call.method, call.path) for one in calls
                )
            ):  # an example of another call of its line
                continue
            found = _body(call, said, lines[at + 1 : at + 1 + AHEAD])
            body, kind = (found, JSON) if found else _form(said) if call.method in _BODIES else ({}, JSON)
            body, kind = last if not body and _SAME.search(said) else (body, kind)
            last = (body, kind) if body else last
            one = _operation(call, said, body, kind)
            known = paths.setdefault(template, {}).setdefault(call.method.lower(), one)
            if "requestBody" in one and "requestBody" not in known:  # an earlier line has it without its body
                paths[template][call.method.lower()] = one
    for template, item in paths.items():
        if names := re.findall(r"\{([^{}/]+)\}", template):
            schema = {"type": "string"}
            item["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": schema} for name in names
            ]
    schemes = _schemes(text)
    return {"openapi": "3.1.0", "paths": paths} | schemes if paths else None


def _schemes(text: str) -> dict[str, Any]:
    """How requests show who asks, as a guide writes it: by a header of its own, or by HTTP basic."""
    found = dict[str, Any]()
    if header := _KEY_HEADER.search(text):
        found["header"] = {"type": "apiKey", "in": "header", "name": header[1]}
    elif _BASIC.search(text):
        found["basic"] = {"type": "http", "scheme": "basic"}
    return {"components": {"securitySchemes": found}} if found else {}


def _form(said: str) -> tuple[dict[str, Any], str]:
    """The form that a line sends by curl, and its media type; {} for none."""
    if "curl" not in said:
        return {}, JSON
    sent = [(one[1], next(filter(None, one.groups()[1:]), "")) for one in _CURL_DATA.finditer(said)]
    pairs = [pair for _, text in sent if text[:1] not in "{[@" for pair in parse_qsl(text)]
    parts = any(flag in ("-F", "--form") for flag, _ in sent)
    return dict(pairs), "multipart/form-data" if parts else "application/x-www-form-urlencoded"


def _template(path: str) -> str:
    """A path with each place for a value as OpenAPI writes it."""
    return "/".join(
        "{" + next(filter(None, hole.groups())).lower() + "}" if (hole := _HOLE.fullmatch(part)) else part
        for part in path.split("/")
    )


def _operation(call: DocumentedCall, said: str, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A call with its parameters, as the document has them in every example of it, and its body."""
    made: dict[str, Any] = {"summary": said.partition(call.path)[2][:400]}
    if pairs := parse_qsl(call.query, keep_blank_values=True):
        made["parameters"] = [
            {"name": name, "in": "query", "required": True, "schema": _schema(value, name=False)}
            for name, value in pairs
        ]
    if body and call.method in _BODIES:
        fields = {str(name): _schema(value, name=True) for name, value in body.items()}
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        made["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    return made


def _schema(value: object, *, name: bool) -> dict[str, Any]:
    """What an example shows of its kind; `name`: a single word of a body may name something, and stays."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int | float):
        return {"type": "integer" if isinstance(value, int) else "number", "default": value}
    if not isinstance(value, str):
        return {"type": "array"} if isinstance(value, list) else {"type": "object"}
    if not name and _WHOLE.fullmatch(value):
        return {"type": "integer", "default": int(value)}
    single = name and _NAMES.fullmatch(value) and not _BRACKETED.fullmatch(value)
    return {"type": "string", "const": value} if single else {"type": "string"}


def _body(call: DocumentedCall, said: str, after: Sequence[str]) -> dict[str, Any]:
    """The first object beside a call, or below it before anything else begins, that is not an answer."""
    below = itertools.takewhile(lambda row: not row.startswith("#") and not documented(row), after)
    rest = "\n".join((said.partition(call.path)[2], *below))
    at = rest.find("{") if call.method in _BODIES else -1
    while at >= 0:
        if _ANSWER.search(rest[:at]):
            return {}
        try:
            found, _ = json.JSONDecoder().raw_decode(rest[at:])
        except (ValueError, RecursionError):
            at = rest.find("{", at + 1)
            continue
        return found if isinstance(found, dict) else {}
    return {}
