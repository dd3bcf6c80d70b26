"""Who is posted to: a real HTTP server on loopback that keeps what it gets, and answers as a test says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.config import SinkSection
from fleet.events.model import Event
from fleet.events.sinks import sinking
from fleet.events.stream import Reader
from fleet.findings.redact import Redactor
from fleet.triggers.hooks.webhook import Delivery, headers, verify
from tests.events.samples import FOOTER, HEADER, Kept, answers, asks, said, stream

SECRET = b"s" * 32
TAKEN = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"
NEVER = b""
MASKED = "a well kept secret"
RUN: tuple[Event, ...] = (HEADER, asks(1), answers(1, ok=True), said(0, "all is well"), FOOTER)
DONE = {"outcome": "done", "detail": "", "final_text": "all is well", "usage": None}


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


@asynccontextmanager
async def sent(
    *receivers: Receiver, kinds: Sequence[str] | None = None, **limits: float
) -> AsyncIterator[tuple[Reader, ...]]:
    """Sinks for these, named by their number."""
    more = {} if kinds is None else {"kinds": kinds}
    sections = {
        f"sink-{number}": SinkSection.model_validate({"url": receiver.url, **more})
        for number, receiver in enumerate(receivers)
    }
    async with sinking(sections, seal=seal, mask=Redactor([MASKED]).value, **limits) as readers:
        yield readers


async def send(
    *receivers: Receiver, events: Sequence[Event] = RUN, kinds: Sequence[str] | None = None, **limits: float
) -> list[Event]:
    """These happen, at once; what was written down of them."""
    sink = Kept()
    async with sent(*receivers, kinds=kinds, **limits) as readers:
        line = stream(sink, *readers)
        for event in events:
            line.emit(event)
    return sink.events


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fleet.sinks"]
