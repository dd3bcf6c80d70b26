"""A client of MCP over streamable HTTP, by hand: it can send what is wrong, and believes nothing it is sent.

Two wires: 2026-07-28 without sessions, and `initialize` up to 2025-11-25 with a session. A reply is JSON or
an event stream; a stream is read until the reply is there, whatever else it holds, and never beyond a limit.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox import http, strict_json
from sandbox.agents.sse import Decoder, StreamFault
from sandbox.errors import Deadline, Failure
from sandbox.pages.latency import get
from sandbox.text import clean

STATELESS = "2026-07-28"
SESSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Versions that begin with `initialize`, the newest first."""
CALL = "tools/call"
LISTS: Mapping[str, str] = {
    "tools": "tools/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "prompts": "prompts/list",
}
"""What a server lists, and the method that lists it."""
READS = frozenset(
    (
        *("initialize", "notifications/initialized", "server/discover", "ping"),
        *LISTS.values(),
        *("resources/read", "prompts/get"),
    )
)
"""Methods that read, by their definition."""
MAX_BODY = 2 << 20
MAX_EVENTS = 500
MAX_PAGES = 20
"""Pages of one list; more, or a cursor that comes twice, is a list without an end."""
NAME_OF = {CALL: "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that names what a method is for."""
_META = "io.modelcontextprotocol/"
SERVER_INFO = f"{_META}serverInfo"
"""Where a server without sessions names itself, in `_meta` of its results."""
CONTRADICTED = {"method": "ping", "name": "qa-another-name", "protocol-version": "1999-01-01"}
"""Headers that repeat the body, and what they say to contradict it; the version is one of both wires."""
_KEY = {"templates": "resourceTemplates"}
Json = dict[str, Any]


def reads(body: bytes) -> bool:
    """Whether a body is one well-formed JSON-RPC message of a method that reads."""
    try:
        message = strict_json.loads(body, values=10_000, pairs=_unrepeated)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("jsonrpc") == "2.0" and message.get("method") in READS


def _unrepeated(pairs: list[tuple[str, Any]]) -> Json:
    """An object; ValueError for a key that two readers may read in two ways."""
    found = dict(pairs)
    if len(found) != len(pairs) or len({key.casefold() for key in found}) != len(pairs):
        raise ValueError("a key comes twice")
    return found


@dataclass(frozen=True, slots=True)
class McpReply:
    """The reply to one request: its `result`, or the JSON-RPC error as `code` and `error`; None without
    either."""

    status: int
    headers: Mapping[str, str]
    latency_ms: float
    result: Json | None = None
    code: int = 0
    error: str = ""

    @property
    def ok(self) -> bool:
        return self.result is not None and self.status < 400


@dataclass(slots=True)
class McpClient:
    """One connection of one caller. `wire`: the version to speak; "" for the newest that the server has."""

    url: str
    headers: Mapping[str, str]
    deadline: Deadline
    wire: str = ""
    session: str = ""
    name: str = "qa-fleet"
    """How it names itself."""
    contradicts: str = ""
    """The header of CONTRADICTED that says something else than the body, after the beginning."""
    _count: int = field(default=0)

    def open(self) -> McpReply:
        """Begin; what the server says of itself, or the refusal."""
        if self.wire in ("", STATELESS):
            asked, self.wire = self.wire, STATELESS
            reply = self.read(get(self.beginning(), self.deadline))
            if reply.ok or asked or reply.status in (401, 403):
                return reply
            self.wire = SESSIONS[0]
        reply = self.read(get(self.beginning(), self.deadline))
        if reply.ok:
            self.session = reply.headers.get("mcp-session-id", "")[:1_000]
            chosen = (reply.result or {}).get("protocolVersion")
            self.wire = chosen if chosen in SESSIONS else self.wire
            get(self.request("notifications/initialized", {}, note=True), self.deadline)
        return reply

    def beginning(self) -> http.HttpRequest:
        """The request that a server describes itself to."""
        if self.wire == STATELESS:
            return self.request("server/discover", {})
        greeting = {"protocolVersion": self.wire, "capabilities": {}, "clientInfo": self._self}
        return self.request("initialize", greeting)

    def alive(self) -> http.HttpRequest:
        """A request that a server answers at once, if only by an error."""
        return self.beginning() if self.wire == STATELESS else self.request("ping", {})

    @property
    def _self(self) -> Json:
        return {"name": self.name, "version": "1"}

    def close(self) -> None:
        """End the session that this client began; a server may refuse that."""
        if self.session:
            with suppress(Failure):
                get(http.HttpRequest("DELETE", self.url, self._headers("", {})), self.deadline.within(2.0))
            self.session = ""

    def ask(self, method: str, params: Mapping[str, Any]) -> McpReply:
        """One request, and its reply; Failure as of any page."""
        return self.read(get(self.request(method, params), self.deadline))

    def listed(self, kind: str) -> tuple[list[Any], McpReply, bool]:
        """All pages of a list, its last reply, and whether it ended."""
        found, cursors, params = list[Any](), set[str](), dict[str, Any]()
        for _ in range(MAX_PAGES):
            reply = self.ask(LISTS[kind], params)
            page = (reply.result or {}).get(_KEY.get(kind, kind))
            found += page if isinstance(page, list) else []
            cursor = (reply.result or {}).get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return found, reply, True
            if cursor in cursors:
                break
            cursors.add(cursor)
            params = {"cursor": cursor}
        return found, reply, False

    def request(self, method: str, params: Mapping[str, Any], *, note: bool = False) -> http.HttpRequest:
        """A request as it is sent."""
        self._count += 1
        sent = dict(params)
        if self.wire == STATELESS:
            sent["_meta"] = dict(params.get("_meta", {})) | {
                f"{_META}protocolVersion": STATELESS,
                f"{_META}clientCapabilities": {"elicitation": {"form": {}}} if method == CALL else {},
                f"{_META}clientInfo": self._self,
            }
        message = {"jsonrpc": "2.0", "method": method, "params": sent} | ({} if note else {"id": self._count})
        body = json.dumps(message).encode()
        wait = _ReplyReader(self._count).feed
        headers = self._headers(method, params)
        return http.HttpRequest("POST", self.url, headers, body, "identity", MAX_BODY, wait)

    def read(self, reply: http.HttpReply) -> McpReply:
        """An HTTP reply as that to the last request; what is not JSON-RPC has no result."""
        found = _message(reply, self._count)
        plain = McpReply(reply.status, reply.headers, reply.latency_ms)
        error = found.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            text = clean(str(error.get("message", "")), 300)
            return replace(plain, code=code if type(code) is int else -1, error=text or "an error")
        result = found.get("result")
        return replace(plain, result=result) if isinstance(result, dict) else plain

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        sent = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        sent |= {name.lower(): value for name, value in self.headers.items()}
        if self.wire == STATELESS:
            sent |= {"mcp-protocol-version": STATELESS, "mcp-method": method}
            named = str(params.get(NAME_OF.get(method, ""), ""))
            sent |= {"mcp-name": _header(named)} if named else {}
        elif method != "initialize":
            sent |= {"mcp-protocol-version": self.wire}
            sent |= {"mcp-session-id": self.session} if self.session else {}
        beginning = method in ("server/discover", "initialize", "notifications/initialized", "")
        if self.contradicts and not beginning:
            sent |= {f"mcp-{self.contradicts}": CONTRADICTED[self.contradicts]}
        return sent


def _header(value: str) -> str:
    """A value that a header can carry: printable ASCII as it is, anything else as Base64 (2026-07-28)."""
    plain = value.isascii() and value.isprintable() and value == value.strip()
    return value if plain else f"=?base64?{b64encode(value.encode('utf-8', 'replace')).decode()}?="


class _ReplyReader:
    """Says of the bytes so far whether the reply to a request is among the events of a stream."""

    def __init__(self, ident: int) -> None:
        self._ident, self._decoder, self._over = ident, Decoder(primed=True), False

    def feed(self, chunk: bytes) -> bool:
        """Whether nothing more needs to be read; a body that is no stream is read to its end."""
        if self._over:
            return False
        try:
            self._decoder.feed(chunk)
        except StreamFault:
            self._over = True  # JSON, or a stream that breaks its rules
            return False
        if len(self._decoder.events) > MAX_EVENTS:
            return True
        return any(_answers(one, self._ident) for one in self._decoder.events)


def _answers(event: object, ident: int) -> bool:
    if not isinstance(event, dict) or "method" in event:
        return False
    return event.get("id") == ident or ("error" in event and event.get("id") is None)


def _message(reply: http.HttpReply, ident: int) -> Json:
    """The JSON-RPC reply in a body; empty where there is none."""
    for one in _events(reply) if "event-stream" in reply.content_type.lower() else _json(reply):
        if isinstance(one, dict) and _answers(one, ident):
            return one
    return {}


def _events(reply: http.HttpReply) -> Iterator[object]:
    decoder = Decoder(primed=True)
    with suppress(StreamFault):  # the events before a fault count
        decoder.feed(reply.body)
    yield from decoder.events[:MAX_EVENTS]


def _json(reply: http.HttpReply) -> Iterator[object]:
    with suppress(ValueError, RecursionError):
        yield strict_json.loads(reply.body)
