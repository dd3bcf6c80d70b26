"""Who is posted to: a real HTTP server on loopback that keeps what it gets, and answers as a test says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fleet.triggers.hook import Delivery, headers, verify

SECRET = b"s" * 32
TAKEN = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"
NEVER = b""


def seal(name: str, body: bytes) -> dict[str, str]:
    """As the composition root signs."""
    return headers(SECRET, f"delivery-{name}", int(time.time()), body)


@dataclass
class Receiver:
    """What came, in order. `endless` is said after the answer, again and again."""

    answer: bytes = TAKEN
    endless: bytes = b""
    url: str = ""
    posts: list[Delivery] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _at_work: set[asyncio.Task[None]] = field(default_factory=set)

    def batches(self, secret: bytes = SECRET) -> list[dict[str, Any]]:
        """The bodies; each is one that a fleet's own webhook would take."""
        for post in self.posts:
            assert len(verify(post, secrets=[secret], personas=["qa-a"], now=datetime.now(UTC))) == 1
        return [json.loads(post.body, parse_constant=_no_constant) for post in self.posts]

    def deliveries(self) -> list[dict[str, Any]]:
        return [delivery for batch in self.batches() for delivery in batch["deliveries"]]

    def ends(self) -> list[dict[str, Any]]:
        return [batch["end"] for batch in self.batches() if batch["end"]]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._at_work.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            line, *pairs = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            head = [(name, value.strip()) for name, _, value in (pair.partition(":") for pair in pairs)]
            size = next(int(value) for name, value in head if name.lower() == "content-length")
            self.posts.append(Delivery("deploy", tuple(head), await reader.readexactly(size)))
            self.lines.append(line)
            if not self.answer:
                await reader.read()  # until the other side gives up
            writer.write(self.answer)
            while self.endless:
                writer.write(self.endless)
                await writer.drain()
        writer.close()
        self._at_work.discard(task)

    async def end(self) -> None:
        """Nobody is listened to any more."""
        for task in list(self._at_work):
            task.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)


@asynccontextmanager
async def receiving(answer: bytes = TAKEN, *, endless: bytes = b"") -> AsyncIterator[Receiver]:
    """A receiver with an address."""
    receiver = Receiver(answer, endless)
    server = await asyncio.start_server(receiver._serve, "127.0.0.1", 0, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    receiver.url = f"http://127.0.0.1:{port}/hooks/deploy"
    try:
        yield receiver
    finally:
        server.close()
        await receiver.end()
        await server.wait_closed()


def _no_constant(text: str) -> Any:
    raise AssertionError(f"{text} is not JSON")
