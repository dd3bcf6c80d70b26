"""One field of a GraphQL API, asked and answered as a route of any other API is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from sandbox import strict_json
from sandbox.http import HttpReply
from sandbox.spec import Mistake

_VARIABLE = re.compile(r"\$(\w{1,80})\s{0,4}:\s{0,4}(\w{1,80})")
_STATUSES = (
    (
        401,
        re.compile(
            r"(?i)unauth|authenticat|not (?:logged|signed) in|log ?in|sign ?in|session"
            r"|\b(?:access|auth|bearer|bad|expired|invalid|missing|no|your) token\b"
            r"|\btoken (?:is|has|was|expired|invalid|missing|required)\b"
        ),
    ),
    (403, re.compile(r"(?i)forbid|permission|not allowed|denied|not authori[sz]ed|access|privilege")),
    (404, re.compile(r"(?i)not.?found|no such|does ?n[o']t exist|unknown|missing")),
    (500, re.compile(r"(?i)^(?:internal (?:server )?error|unexpected error)")),
)
"""What an error says, by the status that other APIs have for it."""


def graphql_request(
    path: str, fields: Mapping[str, Any], documents: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """The path and the body of `ENDPOINT#FIELD/VALUE…`: values are its first variables, fields the others."""
    endpoint, _, rest = path.partition("#")
    field, *values = rest.split("/")
    if (document := documents.get(f"{endpoint}#{field}")) is None:
        raise Mistake(f"/args/documents: none of {endpoint}#{field}")
    named = _VARIABLE.findall(document)
    variables: dict[str, Any] = {
        name: int(text) if kind == "Int" and (text := unquote(value)).isdecimal() else unquote(value)
        for (name, kind), value in zip(named, values, strict=False)
    }
    return endpoint, {"query": document, "variables": variables | dict(fields)}


def graphql_answer(reply: HttpReply) -> HttpReply:
    """The value of the one field; where there is none, the errors' words, with the status that they mean."""
    try:
        read = strict_json.loads(reply.body)
    except (ValueError, RecursionError):
        return reply
    data, errors = (read.get("data"), read.get("errors")) if isinstance(read, dict) else (None, None)
    value = next(iter(data.values()), None) if isinstance(data, dict) else None
    if value is not None:
        return replace(reply, status=200, body=json.dumps(value).encode())
    if not errors:
        missing = isinstance(data, dict)
        return replace(reply, status=404, body=b"{}") if missing else reply
    said = [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    codes = (extra.get("code", "") for one in said if isinstance(extra := one.get("extensions"), dict))
    words = " ".join((*(str(one.get("message", "")) for one in said), *map(str, codes)))
    status = next((number for number, form in _STATUSES if form.search(words)), 400)
    return replace(reply, status=status, body=json.dumps({"error": words[:2_000]}).encode())
