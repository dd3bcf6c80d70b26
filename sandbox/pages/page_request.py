"""What a page is asked with: method, headers and body, checked and bounded before they leave the guest.

What may be sent where is decided outside: by the gate, from the same arguments, and again by the broker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sandbox.http import HttpRequest
from sandbox.spec import OVERRIDES, SAFE, UNSAFE, Effect, Mistake

MAX_HEADERS = 20
MAX_VALUE = 4_000
"""Characters of one header's value."""
MAX_FIELDS = 50
MAX_SENT = 65_536
"""Bytes of a body."""

OURS = frozenset(
    (
        *("connection", "content-length", "expect", "forwarded", "keep-alive"),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("x-forwarded-for", "x-qa-host", "x-qa-once", "x-qa-upgrade", "x-qa-witness"),
    )
)
"""Hop-by-hop fields, and those that the guest and the broker set themselves."""

NOBODYS = "x-qa-host"
"""The broker sends it as the Host: only a name that no server has."""
UPGRADE = "x-qa-upgrade"
"""The broker sends it as an offer to change the protocol: only to a WebSocket, of which the answer alone is
read."""
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_VALUE = re.compile(r"[ -~]*", re.ASCII)


def effect_of(args: Mapping[str, Any]) -> Effect:
    """An act unless the method is safe, and no header may turn it into another one."""
    headers = args.get("headers", {})
    named = {str(name).lower() for name in headers} if isinstance(headers, Mapping) else OVERRIDES
    return Effect.LOOK if args.get("method", "GET") in SAFE and not named & OVERRIDES else Effect.ACT


def page_request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    fields: Mapping[str, Any],
    body: str,
    body_type: str,
) -> HttpRequest:
    """The request of one call; Mistake, with its place in the arguments, for what may not be sent."""
    if method not in (*SAFE, *UNSAFE):
        raise Mistake(f"/args/method: expected one of {', '.join((*SAFE, *UNSAFE))}")
    sent = _headers(headers)
    data, kind = _body(fields, body, body_type)
    if data and method in SAFE:
        raise Mistake(f"/args/{'fields' if fields else 'body'}: {method} is sent without a body")
    if data:
        sent = {"content-type": kind} | sent
    return HttpRequest(method, url, sent, data)


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    if len(given) > MAX_HEADERS:
        raise Mistake(f"/args/headers: at most {MAX_HEADERS}")
    sent: dict[str, str] = {}
    for name, value in given.items():
        key, where = name.lower(), f"/args/headers/{name[:64]}"
        if not _NAME.fullmatch(name) or key in sent:
            raise Mistake(f"{where}: expected a header's name, once")
        if key in OURS or key in OVERRIDES:
            raise Mistake(f"{where}: this header cannot be set")
        if key == "upgrade" and value != "websocket":
            raise Mistake(f"{where}: only `websocket` is offered")
        if len(value) > MAX_VALUE or not _VALUE.fullmatch(value):
            raise Mistake(f"{where}: expected one printable ASCII line of at most {MAX_VALUE} characters")
        sent[{"host": NOBODYS, "upgrade": UPGRADE}.get(key, key)] = value
    return sent


def _body(fields: Mapping[str, Any], body: str, body_type: str) -> tuple[bytes, str]:
    if fields and body:
        raise Mistake("/args/body: give fields or body, not both")
    if len(body_type) > 100 or not _VALUE.fullmatch(body_type):
        raise Mistake("/args/body_type: expected a content type")
    if len(fields) > MAX_FIELDS:
        raise Mistake(f"/args/fields: at most {MAX_FIELDS}")
    for name, value in fields.items():
        if type(value) not in (str, int, float, bool):
            raise Mistake(f"/args/fields/{name[:64]}: expected a string, a number, or true or false")
    data = json.dumps(dict(fields)).encode() if fields else body.encode("utf-8", "replace")
    if len(data) > MAX_SENT:
        raise Mistake(f"/args/{'fields' if fields else 'body'}: more than {MAX_SENT} bytes")
    return data, "application/json" if fields else body_type
