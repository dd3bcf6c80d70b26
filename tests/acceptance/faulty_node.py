"""A provider in front of a real node: it limits, lags, restarts, and fails a share of all requests."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fleet.chain.node.rpc import Rpc
from fleet.errors import RpcError, Unreachable

KINDS = ("429", "retry-after", "-32005", "html", "header not found", "internal error", "502", "cut", "lag")
LAG = 2
"""Blocks."""


@dataclass
class FaultyNode:
    """`share` of all single requests meet one of `kinds`; `per_second` limits all of them together."""

    rpc: Rpc
    share: float = 0.1
    kinds: tuple[str, ...] = KINDS
    per_second: int = 0
    seed: int = 1
    met: Counter[str] = field(default_factory=Counter)
    url: str = ""
    _recent: deque[float] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._by_kind: dict[str, Callable[[Any], bytes]] = {
            "429": lambda call: _http(b"slow down", "429 Too Many Requests"),
            "retry-after": lambda call: _http(b"", "429 Too Many Requests", "retry-after: 1\r\n"),
            "-32005": lambda call: _error(call, -32005, "limit exceeded"),
            "html": lambda call: _http(b"<!DOCTYPE html><title>maintenance</title>"),
            "header not found": lambda call: _error(call, -32000, "header not found"),
            "internal error": lambda call: _error(call, -32603, "Internal error"),
            "502": lambda call: _http(b"<html>bad gateway</html>", "502 Bad Gateway"),
            "cut": lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{",
        }

    async def answer(self, asked: Any) -> bytes:
        if self.per_second and not self._admits():
            self.met["limited"] += 1
            return _http(b"", "429 Too Many Requests")
        kind = self._random.choice(self.kinds) if self._random.random() < self.share else ""
        self.met[kind] += 1
        if kind in self._by_kind:
            return self._by_kind[kind](asked)
        behind = LAG if kind == "lag" else 0
        many = asked if isinstance(asked, list) else [asked]
        answers = [await self._one(call, behind) for call in many]
        return _http(json.dumps(answers if isinstance(asked, list) else answers[0]).encode())

    def _admits(self) -> bool:
        now = time.monotonic()
        while self._recent and now - self._recent[0] > 1:
            self._recent.popleft()
        if len(self._recent) >= self.per_second:
            return False
        self._recent.append(now)
        return True

    async def _one(self, call: dict[str, Any], behind: int) -> dict[str, Any]:
        said = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            return said | {"result": await self._result(call["method"], call.get("params", []), behind)}
        except RpcError as error:
            return said | {"error": {"code": error.code, "message": str(error), "data": error.data}}

    async def _result(self, method: str, params: list[Any], behind: int) -> Any:
        """The node's answer, or that of a replica some blocks behind it."""
        if not behind or method == "eth_sendRawTransaction":
            return await self.rpc.call(method, params)
        head = max(int(await self.rpc.call("eth_blockNumber"), 16) - behind, 0)
        if method == "eth_blockNumber":
            return hex(head)
        if method != "eth_getTransactionByHash" and any(_beyond(one, head) for one in params):
            raise RpcError("header not found", code=-32000)
        real = await self.rpc.call(
            method, [hex(head) if one in ("latest", "pending") else one for one in params]
        )
        if method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
            number = real and real.get("blockNumber")
            return None if not number or int(number, 16) > head else real
        return real


def _beyond(param: Any, head: int) -> bool:
    return isinstance(param, str) and len(param) < 20 and param.startswith("0x") and int(param, 16) > head


def _error(asked: Any, code: int, message: str) -> bytes:
    said = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
    many = asked if isinstance(asked, list) else [asked]
    answers = [said | {"id": call["id"]} for call in many]
    return _http(json.dumps(answers if isinstance(asked, list) else answers[0]).encode())


def _http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def before(node: FaultyNode) -> AsyncIterator[FaultyNode]:
    """The provider while the block runs, at `node.url`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            writer.write(await node.answer(json.loads(await reader.readexactly(size))))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, Unreachable):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    node.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield node
    finally:
        server.close()
        await server.wait_closed()


async def restarts(node: FaultyNode, every_s: float, down_s: float) -> None:
    """Answer nothing for a while, again and again, until cancelled."""
    answer = node.answer

    async def nothing(asked: Any) -> bytes:
        node.met["restarting"] += 1
        return b""

    try:
        while True:
            await asyncio.sleep(every_s)
            node.answer = nothing  # type: ignore[method-assign]
            await asyncio.sleep(down_s)
            node.answer = answer  # type: ignore[method-assign]
    finally:
        node.answer = answer  # type: ignore[method-assign]
