"""Parts that lie, hang or insist, each behind the port of the part it stands for."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fleet.broker.broker import TxPort
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.rpc import Rpc
from fleet.errors import RpcError
from fleet.jail.model import Egress, End, Outcome, Tier
from sandbox.spec import PROTOCOL
from tests.sandbox.doubles import NoPurse

Tamper = Callable[[str, list[Any], Any], Awaitable[Any]]
"""`(method, params, answer)` to the answer that is given instead; RpcError becomes an error object."""


async def _body(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return await reader.readexactly(length)


def _http(body: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )


@asynccontextmanager
async def between(rpc: Rpc, tamper: Tamper) -> AsyncIterator[str]:
    """A node in front of the node, whose answers are tampered with; its URL."""

    async def one(call: dict[str, Any]) -> dict[str, Any]:
        said = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            answer = await rpc.call(call["method"], call.get("params", []))
            return said | {"result": await tamper(call["method"], call.get("params", []), answer)}
        except RpcError as error:
            return said | {"error": {"code": error.code, "message": str(error), "data": error.data}}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = json.loads(await _body(reader))
            answer = [await one(call) for call in asked] if isinstance(asked, list) else await one(asked)
            writer.write(_http(json.dumps(answer).encode()))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that takes requests and never answers; its URL, and the first line of each request."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked.append((await reader.readline()).decode())
            await reader.read()  # until the other side has had enough
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        await server.wait_closed()


class Answering:
    """A jail that is none: it answers with whatever it was given."""

    def __init__(self, result: dict[str, Any]) -> None:
        self._result = result
        self.tools: list[str] = []

    async def probe(self) -> Tier:
        return Tier(backend="double", tier="none", ok=False, checks=())

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        self.tools.append(json.loads(request)["tool"])
        line = json.dumps({"v": PROTOCOL, "result": self._result}).encode()
        return Outcome(end=End.EXITED, code=0, stdout=line, stderr=b"", seconds=0.0)

    async def cool(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


class Looping(Answering):
    """What runs in it asks for the same transaction a hundred times, whatever it is told."""

    def __init__(self, diamond: str) -> None:
        super().__init__({"ok": False, "error": "no luck"})
        self._diamond = diamond
        self.answers: list[int] = []

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        name = json.loads(request)["args"]["name"]
        asked = {"key": name, "to": self._diamond, "gas": 2_200_000}
        asked["data"] = "0x" + FUNCTIONS["register"].encode(name).hex()
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        port = listener.getsockname()[1]
        assert egress is not None
        async with egress(listener):
            for _ in range(100):
                self.answers.append(await _post(port, "/tx", asked))
        return await super().call(request, deadline_s=deadline_s)


async def _post(port: int, path: str, body: dict[str, Any]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    raw = json.dumps(body).encode()
    writer.write(
        b"POST %b HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
        % (path.encode(), len(raw), raw)
    )
    head = await reader.readline()
    await reader.read()
    writer.close()
    return int(head.split()[1])


class Dropping(NoPurse):
    """A TxPort that says yes to the second metadata write of a name and does nothing."""

    def __init__(self, port: TxPort) -> None:
        self._port = port
        self.writes = 0

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        if data[:4] == FUNCTIONS["setMetadata"].selector:
            self.writes += 1
            if self.writes == 2:
                return {"tx": "0x" + "ab" * 32, "status": 1, "gas_used": 50_000, "block": 1, "reverted": ""}
        return await self._port.submit(key, to, data, value, gas)

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, Any]:
        return await self._port.token(key, route, age)

    def over(self) -> tuple[str, str] | None:
        return self._port.over()
