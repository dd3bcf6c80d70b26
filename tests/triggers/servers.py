"""WebSocket servers that a test writes, in every way to misbehave, and a relay that cuts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketStream
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from fleet.triggers.chain.websocket import LARGEST

Behaviour = Callable[[ServerConnection], Coroutine[Any, Any, None]]


def notice(result: object = None, ident: str = "0x1") -> str:
    """A message of a subscription."""
    head = {"number": "0x7", "hash": "0x" + "ab" * 32} if result is None else result
    params = {"subscription": ident, "result": head}
    return json.dumps({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})


async def answered(peer: ServerConnection) -> None:
    """Take the subscription."""
    asked = json.loads(await peer.recv())
    assert (asked["method"], list(asked["params"])) == ("eth_subscribe", ["newHeads"])
    await peer.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": "0x1"}))


async def mute(peer: ServerConnection) -> None:
    await answered(peer)
    await peer.wait_closed()


async def silent(peer: ServerConnection) -> None:
    await peer.wait_closed()


async def closing(peer: ServerConnection) -> None:
    await answered(peer)


async def hasty(peer: ServerConnection) -> None:
    """Closes before it answers."""
    await peer.recv()


async def flood(peer: ServerConnection) -> None:
    await answered(peer)
    while True:
        await peer.send(notice())


async def early_flood(peer: ServerConnection) -> None:
    """Sends without having answered."""
    while True:
        await peer.send(notice())


def sends(*messages: str | bytes) -> Behaviour:
    """Takes the subscription, sends these, and stays."""

    async def behave(peer: ServerConnection) -> None:
        await answered(peer)
        for message in messages:
            await peer.send(message)
        await peer.wait_closed()

    return behave


def answers(**answer: Any) -> Behaviour:
    """Answers the subscription with this, and stays."""

    async def behave(peer: ServerConnection) -> None:
        asked = json.loads(await peer.recv())
        await peer.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}))
        await peer.wait_closed()

    return behave


HOSTILE: dict[str, Behaviour] = {
    "mute": mute,
    "silent": silent,
    "closing": closing,
    "flood": flood,
    "early flood": early_flood,
    "no JSON": sends("nonsense"),
    "bytes": sends(b"\xff\xfe\x00"),
    "oversize": sends("x" * (LARGEST + 1)),
    "deep": sends("[" * 100_000),
    "a list": sends("[]"),
    "a number": sends("7"),
    "another answer": sends('{"jsonrpc": "2.0", "id": 99, "result": "0x2"}'),
    "no head": sends(notice("no head"), notice([]), notice({"number": "zz", "hash": 7})),
    "no params": sends('{"method": "eth_subscription"}', '{"method": "eth_subscription", "params": 7}'),
    "another subscription": sends(notice(ident="0x2")),
    "an error": answers(error={"code": -32601, "message": "no subscriptions\x1b[31m here"}),
    "another id": answers(id=41, result="0x1"),
    "no result": answers(),
    "a subscription of nonsense": answers(result={"a": [1]}),
}


@asynccontextmanager
async def server(behave: Behaviour) -> AsyncIterator[str]:
    """The URL of a server that behaves so towards each client."""

    async def guarded(peer: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            await behave(peer)

    async with serve(guarded, "127.0.0.1", 0, close_timeout=0.1, ping_interval=None) as running:
        port = next(iter(running.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}"


@dataclass
class Relay:
    """Passes connections on to a port of this machine, until it is told to cut them."""

    target: int
    port: int = 0
    open: bool = True
    made: int = 0
    scopes: set[anyio.CancelScope] = field(default_factory=set)

    def cut(self) -> None:
        """End every connection, and refuse new ones until `open` is set again."""
        self.open = False
        for scope in self.scopes:
            scope.cancel()

    async def pass_on(self, near: SocketStream) -> None:
        with anyio.CancelScope() as scope:
            async with near:
                if not self.open:
                    return
                self.made += 1
                self.scopes.add(scope)
                async with (
                    await anyio.connect_tcp("127.0.0.1", self.target) as far,
                    anyio.create_task_group() as ways,
                ):
                    ways.start_soon(_pump, near, far, scope)
                    ways.start_soon(_pump, far, near, scope)
        self.scopes.discard(scope)


async def _pump(source: SocketStream, sink: SocketStream, scope: anyio.CancelScope) -> None:
    try:
        while True:
            await sink.send(await source.receive())
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        scope.cancel()


@asynccontextmanager
async def relay(target: int) -> AsyncGenerator[Relay]:
    """A relay to a port, for the length of a block."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    found = Relay(target, listener.extra(anyio.abc.SocketAttribute.local_port))
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, found.pass_on)
        yield found
        tasks.cancel_scope.cancel()
