"""What answers JSON-RPC: a node, a contract on its chain, an MCP server; only calls that read are made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from fleet.app.discovery.visitor import Unanswered, Visitor, VisitorAnswer
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.codec import Malformed
from fleet.chain.node.facets import selectors
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.errors import Unreachable
from fleet.text import counted, line
from sandbox.agents.mcp_wire import SERVER_INFO, STATELESS

NO_FUNCTION = "00000001"
"""A selector of no function that is known."""
_MCP_START = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "qa-fleet", "version": "1"},
}
_MCP_DISCOVER = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
MCP_CLOSED = "it refuses a stranger as an MCP server does, and names its metadata"
_MCP_HEADERS = {"mcp-protocol-version": STATELESS, "mcp-method": "server/discover"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNode:
    rpc: str
    id: int
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundContract:
    """A contract at a named address. `functions`: how many its loupe lists; None without a loupe."""

    address: str
    how: str
    functions: int | None = None
    takes_feedback: bool = False


def may_be_node(answer: VisitorAnswer) -> bool:
    """Whether a place refused GET, or answered as JSON-RPC does: only such a place is posted to."""
    refused = answer.status in (400, 404, 405, 415, 426) and "html" not in answer.type
    return answer.whole and (refused or b'"jsonrpc"' in answer.body[:2_000])


async def _asked(
    visitor: Visitor, url: str, method: str, params: object, more: Mapping[str, str] = MappingProxyType({})
) -> VisitorAnswer | None:
    """The answer to a JSON-RPC call, that of a stream as if it were JSON; None for none."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        accept = "application/json, text/event-stream"
        answer = await visitor.ask("POST", url, json.dumps(asked).encode(), accept=accept, more=more)
    except Unanswered:
        return None
    if answer.type != "text/event-stream":
        return answer
    events = [
        replace(answer, body=one.encode()) for one in re.findall(r"(?m)^data: ?(\{.*)$", answer.text)[:50]
    ]
    # what a server notifies of may come before the reply
    replies = (one for one in events if isinstance(one.json, dict) and "method" not in one.json)
    return next(replies, answer)


def _result(answer: VisitorAnswer | None) -> Any:  # noqa: ANN401  any JSON
    """The result of a JSON-RPC call; None where there is none."""
    said = answer.json if answer else None
    return said.get("result") if isinstance(said, dict) and said.get("jsonrpc") == "2.0" else None


async def _call(visitor: Visitor, url: str, method: str, params: object) -> Any:  # noqa: ANN401  any JSON
    """The result of a JSON-RPC call; None where there is none."""
    return _result(await _asked(visitor, url, method, params))


def _wants_token(answer: VisitorAnswer | None) -> bool:
    """Whether a stranger is refused as the authorisation of MCP has it."""
    challenge = answer.headers.get("www-authenticate", "") if answer and answer.status == 401 else ""
    return "resource_metadata" in challenge


async def chain_of(visitor: Visitor, url: str) -> FoundNode | None:
    """The node at a URL, if it says of which chain it is."""
    try:
        number = as_int(await _call(visitor, url, "eth_chainId", []))
    except Unreachable:
        return None
    how = f"eth_chainId answered {number}"
    return FoundNode(rpc=url.rstrip("/"), id=number, how=how) if 0 < number < 1 << 63 else None


async def contract_at(visitor: Visitor, rpc: str, address: str) -> FoundContract | None:
    """The contract at an address; None without code."""

    async def asked(selector: str) -> bytes:
        call = {"to": address, "data": f"0x{selector}"}
        return as_bytes(await _call(visitor, rpc, "eth_call", [call, "latest"]))

    functions, feedback, code = None, False, b""
    with suppress(Unreachable):
        code = as_bytes(await _call(visitor, rpc, "eth_getCode", [address, "latest"]))
    if not code:
        return None
    with suppress(Unreachable, Malformed):
        functions = len(selectors(await asked(FUNCTIONS["facets"].selector.hex())))
    with suppress(Unreachable):
        feedback = len(await asked(FUNCTIONS["feedbackCount"].selector.hex())) == 32
        feedback = feedback and not await asked(NO_FUNCTION)  # it may answer to everything; a revert is right
    how = f"eth_getCode answered {counted(len(code), 'byte')}"
    how += f"; a diamond: its loupe lists {counted(functions, 'function')}" if functions else "; no loupe"
    how += "; it has a feedback log" if feedback else ""
    return FoundContract(address=address, how=how, functions=functions, takes_feedback=feedback)


async def mcp_server(visitor: Visitor, url: str, absent: bytes | None) -> str:
    """Whether an MCP server answers there. It is first asked as one that only listens: what answers GET as a
    page, or has nothing there, is not posted to."""
    try:
        heard = await visitor.get(url, accept="text/event-stream", limit=4_096)
    except Unanswered:
        return ""
    if _wants_token(heard):
        return MCP_CLOSED
    known = heard.status in (400, 405, 406) or b'"jsonrpc"' in heard.body
    page = "html" in heard.type and b"<" in heard.body  # frameworks call any sentence HTML
    if not heard.whole or not known or heard.body == absent or page:
        return ""
    answer = await _asked(visitor, url, "initialize", _MCP_START)
    if _wants_token(answer):
        return MCP_CLOSED
    if session := answer.headers.get("mcp-session-id") if answer else None:  # some serve one at a time
        with suppress(Unanswered):
            await visitor.ask("DELETE", url, more={"mcp-session-id": session})
    result = _result(answer)
    version = result.get("protocolVersion") if isinstance(result, dict) else None
    if not isinstance(version, str):  # it may speak the wire without sessions alone
        result = _result(await _asked(visitor, url, "server/discover", _MCP_DISCOVER, _MCP_HEADERS))
        listed = result.get("supportedVersions") if isinstance(result, dict) else None
        version = STATELESS if isinstance(listed, list) and STATELESS in listed else None
    if not isinstance(version, str) or not isinstance(result, dict):
        return ""
    meta = result.get("_meta")
    server = (meta if isinstance(meta, dict) else {}).get(SERVER_INFO, result.get("serverInfo"))
    name = line(str(server.get("name", "")), 60) if isinstance(server, dict) else ""
    return f"an MCP server {name!r}, protocol {line(version, 20)}"
