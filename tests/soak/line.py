"""The line between the fleet and its node: passes JSON-RPC on, or does what a bad node does."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import h11
import httpx

BEHIND = 2
"""Blocks that a lagging replica misses; anvil keeps the state of eight."""
HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Hang(Exception):
    """No answer, for ever."""


@dataclass(slots=True)
class Line:
    """Serves on loopback while entered; `mode` is a key of MODES, or `refused` by way of `cut`."""

    target: str
    chance: random.Random
    mode: str = "clear"
    port: int = 0
    asked: int = 0
    _server: asyncio.Server | None = None
    _client: httpx.AsyncClient = field(default_factory=lambda: httpx.AsyncClient(trust_env=False, timeout=60))
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()
        await self._client.aclose()

    async def mend(self) -> None:
        """Listen, always on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Listen no more, and drop every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.drop()

    async def drop(self) -> None:
        """Drop every connection: what hangs comes to an end."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, h11.RemoteProtocolError, httpx.HTTPError, asyncio.CancelledError):
                await self._converse(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = h11.Connection(h11.SERVER)
        body = b""
        while True:
            event = talk.next_event()
            if event is h11.NEED_DATA:
                talk.receive_data(await reader.read(65_536))
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                await self._reply(talk, writer, body)
                body = b""
                if talk.our_state is not h11.DONE:
                    return
                talk.start_next_cycle()
            elif not isinstance(event, h11.Request):
                return

    async def _reply(self, talk: h11.Connection, writer: asyncio.StreamWriter, body: bytes) -> None:
        self.asked += 1
        try:
            reply = await MODES[self.mode](self, body)
        except Hang:
            await asyncio.Event().wait()  # until the connection is dropped
            raise AssertionError("an event that nobody sets was set") from None
        headers = [("content-length", str(len(reply.body))), ("content-type", "application/json")]
        head = h11.Response(status_code=reply.status, headers=[*headers, *reply.headers])
        parts = (head, h11.Data(data=reply.body), h11.EndOfMessage())
        writer.write(b"".join(talk.send(part) or b"" for part in parts))
        await writer.drain()

    async def passed(self, body: bytes) -> bytes:
        """What the node itself answers."""
        headers = {"content-type": "application/json"}
        return (await self._client.post(self.target, content=body, headers=headers)).content

    async def changed(self, body: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Reply:
        """The node's answer, with `change(request, answer)` for each call of it."""
        asked, said = json.loads(body), json.loads(await self.passed(body))
        requests = {one["id"]: one for one in (asked if isinstance(asked, list) else [asked])}
        for one in said if isinstance(said, list) else [said]:
            change(requests[one["id"]], one)
        return Reply(json.dumps(said).encode())


async def clear(line: Line, body: bytes) -> Reply:
    return Reply(await line.passed(body))


async def silent(line: Line, body: bytes) -> Reply:
    raise Hang


async def slow(line: Line, body: bytes) -> Reply:
    await asyncio.sleep(line.chance.uniform(0.3, 1.5))
    return Reply(await line.passed(body))


async def busy(line: Line, body: bytes) -> Reply:
    return Reply(b'{"error": "slow down"}', 429, (("retry-after", "1"),))


async def busy_for_ever(line: Line, body: bytes) -> Reply:
    return Reply(b"", 429, (("retry-after", "99999999"),))


async def html(line: Line, body: bytes) -> Reply:
    return Reply(HTML, 502)


async def torn(line: Line, body: bytes) -> Reply:
    whole = await line.passed(body)
    return Reply(whole[: len(whole) // 2])


async def wrong_id(line: Line, body: bytes) -> Reply:
    """Of another question: a client may number its own, or give them words."""
    return await line.changed(body, lambda _, answer: answer.update(id=f"another than {answer['id']}"))


async def wrong_chain(line: Line, body: bytes) -> Reply:
    def change(request: dict[str, Any], answer: dict[str, Any]) -> None:
        if request["method"] == "eth_chainId":
            answer["result"] = "0x1"

    return await line.changed(body, change)


async def no_receipts(line: Line, body: bytes) -> Reply:
    def change(request: dict[str, Any], answer: dict[str, Any]) -> None:
        if request["method"] == "eth_getTransactionReceipt":
            answer["result"] = None

    return await line.changed(body, change)


async def behind(line: Line, body: bytes) -> Reply:
    """A replica that has not heard of the latest blocks."""
    head = json.loads(await line.passed(b'{"jsonrpc":"2.0","id":0,"method":"eth_blockNumber","params":[]}'))
    old = max(int(head["result"], 16) - BEHIND, 0)
    asked = json.loads(body)
    for one in asked if isinstance(asked, list) else [asked]:
        tags = {"latest", "pending"}
        one["params"] = [hex(old) if isinstance(p, str) and p in tags else p for p in one.get("params", [])]

    def change(request: dict[str, Any], answer: dict[str, Any]) -> None:
        found = answer.get("result")
        if request["method"] == "eth_blockNumber":
            answer["result"] = hex(old)
        elif request["method"].startswith("eth_getTransaction") and isinstance(found, dict):
            new = int(found.get("blockNumber") or "0x0", 16) > old
            answer["result"] = None if new else found

    return await line.changed(json.dumps(asked).encode(), change)


async def replicas(line: Line, body: bytes) -> Reply:
    """A balancer in front of two replicas, one of them behind."""
    return await (behind if line.chance.random() < 0.4 else clear)(line, body)


MODES: dict[str, Callable[[Line, bytes], Awaitable[Reply]]] = {
    "clear": clear,
    "silent": silent,
    "slow": slow,
    "busy": busy,
    "busy-for-ever": busy_for_ever,
    "html": html,
    "torn": torn,
    "wrong-id": wrong_id,
    "wrong-chain": wrong_chain,
    "no-receipts": no_receipts,
    "behind": behind,
    "replicas": replicas,
}
