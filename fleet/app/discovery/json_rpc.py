"""What answers JSON-RPC: a node, a contract on its chain, an MCP server; only calls that read are made."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from fleet.app.discovery.visitor import Unanswered, Visitor, VisitorAnswer
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.codec import Malformed
from fleet.chain.node.facets import selectors
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.errors import Unreachable
from fleet.text import counted, line

NO_FUNCTION = "00000001"
"""A selector of no function that is known."""
_MCP_START = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "qa-fleet", "version": "1"},
}


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


async def _call(visitor: Visitor, url: str, method: str, params: object) -> Any:  # noqa: ANN401  any JSON
    """The result of a JSON-RPC call; None where there is none."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        accept = "application/json, text/event-stream"
        answer = await visitor.ask("POST", url, json.dumps(asked).encode(), accept=accept)
    except Unanswered:
        return None
    said = answer.json
    if answer.type == "text/event-stream" and (event := re.search(r"(?m)^data: ?(\{.*)$", answer.text)):
        said = replace(answer, body=event[1].encode()).json
    return said.get("result") if isinstance(said, dict) and said.get("jsonrpc") == "2.0" else None


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
    known = heard.status in (400, 405, 406) or b'"jsonrpc"' in heard.body
    if not heard.whole or not known or heard.body == absent or "html" in heard.type:
        return ""
    result = await _call(visitor, url, "initialize", _MCP_START)
    if not isinstance(result, dict) or not isinstance(result.get("protocolVersion"), str):
        return ""
    server = result.get("serverInfo")
    name = line(str(server.get("name", "")), 60) if isinstance(server, dict) else ""
    return f"an MCP server {name!r}, protocol {line(result['protocolVersion'], 20)}"
