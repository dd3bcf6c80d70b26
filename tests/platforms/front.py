"""A bad way to a platform: an HTTP relay of its own that is late, answers 502, or resets the connection;
that sends interim answers, limits a client's rate, or is a firewall that blocks or bans whoever attacks.

    python -m tests.platforms.front PORT TARGET_PORT '{"delay_s": 0.3, …}'

One request for each connection. What happens to the n-th request follows from the seed alone.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import h11

from tests.platforms.served import Served, free_port

BAD = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n"
LIMITED = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
ATTACK = re.compile(
    rb"(?i)%3c|<script|%27|\.\.[/%]|%2e%2e|%00|%0d|%0a|\{\{|%7b%7b|%22|select|union|169\.254|evil"
)
"""What the firewall takes for an attack in a request's first line and body."""
BLOCKED = (
    b"<html><head><title>Request blocked</title></head><body><h1>Request blocked</h1>\n"
    b"<p>Rule 942100 matched: You have an error in your SQL syntax; check the manual</p>\n"
    b'<pre>Traceback (most recent call last):\n  File "/srv/app.py", line 12, in view\n'
    b"KeyError: 'id'</pre>\n"
    b"</body></html>\n"
)
HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"expect"))
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, for no time: closing sends RST."""
PIECE = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What befalls requests: shares are of 1, seconds are added to each answer."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Delays lie evenly within this of `delay_s`, either side."""
    bad: float = 0.0
    """Share of answers that are a 502 which the platform never sees."""
    reset: float = 0.0
    """Share of connections that are reset: half of them unanswered, half of them within the answer."""
    interim: float = 0.0
    """Share of answers that have 102 and 103 before them."""
    limited: float = 0.0
    """Share of answers that are a 429 with `Retry-After: 1`."""
    blocks: bool = False
    """A firewall answers 403 to each attack, and quotes its rule."""
    ban_s: float = 0.0
    """After an attack its address is not answered for so long: each connection from there is reset."""
    seed: int = 1


CLEAR = Weather()
ROUGH = Weather(delay_s=0.3, jitter_s=0.15, bad=0.03, reset=0.03)
"""The disturbance that a healthy platform must survive without a finding."""


@dataclass(frozen=True, slots=True)
class Fate:
    """Of one request."""

    delay_s: float
    what: str
    """`pass`, `bad`, `limited`, `interim`, `reset` (unseen by the platform), or `torn` within its answer."""


def fates(weather: Weather) -> Callable[[], Fate]:
    """The next request's fate, each time: always the same number of draws for one."""
    chance = random.Random(weather.seed)

    def following() -> Fate:
        delay_s = weather.delay_s + chance.uniform(-weather.jitter_s, weather.jitter_s)
        draw, early = chance.random(), chance.random() < 0.5
        what = "pass"
        for name in ("bad", "reset", "limited", "interim"):
            share: float = getattr(weather, name)
            if draw < share:
                what = name
                break
            draw -= share
        if what == "reset" and not early:
            what = "torn"
        return Fate(max(delay_s, 0.0), what)

    return following


def front(target: int, weather: Weather, log: Path) -> Served:
    """The relay in front of a port of loopback, as a process to enter."""
    port = free_port()
    words = ("-m", "tests.platforms.front", str(port), str(target), json.dumps(asdict(weather)))
    return Served((sys.executable, *words), port, log)


async def _request(reader: asyncio.StreamReader) -> bytes:
    """One whole request as it goes on to the platform, which is to close after it; empty when none came."""
    heard, said = h11.Connection(h11.SERVER), h11.Connection(h11.CLIENT)
    raw = b""
    while True:
        event = heard.next_event()
        if event is h11.NEED_DATA:
            heard.receive_data(await reader.read(PIECE))
        elif isinstance(event, h11.Request):
            kept = [(name, value) for name, value in event.headers if name not in HOP]
            kept.append((b"connection", b"close"))
            raw += said.send(h11.Request(method=event.method, target=event.target, headers=kept)) or b""
        elif isinstance(event, h11.Data):
            raw += said.send(h11.Data(data=bytes(event.data))) or b""
        elif isinstance(event, h11.EndOfMessage):
            return raw + (said.send(h11.EndOfMessage()) or b"")
        else:
            return b""


async def _passed(writer: asyncio.StreamWriter, target: int, request: bytes, torn: bool) -> bool:
    """The platform's answer, piece by piece; False when it ended within."""
    reader, upstream = await asyncio.open_connection("127.0.0.1", target)
    try:
        upstream.write(request)
        while piece := await reader.read(PIECE):
            writer.write(piece[: len(piece) // 2] if torn else piece)
            await writer.drain()
            if torn:
                return False
        return True
    finally:
        upstream.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    plug: socket.socket = writer.get_extra_info("socket")
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


def _answer(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %s\r\ncontent-length: %d\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n"
    return head % (status, len(body)) + body


def relay(
    target: int, weather: Weather
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """What serves one connection."""
    following = fates(weather)
    banned_until: dict[str, float] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = writer.get_extra_info("peername")[0]
        with suppress(OSError, h11.ProtocolError):
            if not (request := await _request(reader)):
                writer.close()
                return
            first, _, rest = request.partition(b"\r\n")
            attack = ATTACK.search(first) or ATTACK.search(rest.partition(b"\r\n\r\n")[2])
            if weather.ban_s and attack:
                banned_until[caller] = time.monotonic() + weather.ban_s
            if time.monotonic() < banned_until.get(caller, 0.0):
                _reset(writer)
                return
            fate = following()
            await asyncio.sleep(fate.delay_s)
            if weather.blocks and attack:
                writer.write(_answer(b"403 Forbidden", BLOCKED))
            elif fate.what == "bad":
                writer.write(_answer(b"502 Bad Gateway", BAD))
            elif fate.what == "limited":
                writer.write(LIMITED)
            elif fate.what == "reset":
                _reset(writer)
            else:
                writer.write(
                    INTERIM.replace(b"103 Early Hints", b"102 Processing") + INTERIM
                    if fate.what == "interim"
                    else b""
                )
                if not await _passed(writer, target, request, fate.what == "torn"):
                    _reset(writer)
            await writer.drain()
            writer.close()
            return
        _reset(writer)  # the platform itself is not there

    return serve


async def main(port: int, target: int, weather: Weather) -> None:
    """Serves until it is ended."""
    server = await asyncio.start_server(relay(target, weather), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Weather(**json.loads(sys.argv[3]))))
