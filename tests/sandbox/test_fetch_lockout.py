"""qa_fetch with `alive`, of a server that locks its caller out, and of one that is really gone."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from sandbox import http
from sandbox.pages.endings import restarted
from tests.sandbox.doubles import Got, bench, http_answer, read_request

pytestmark = pytest.mark.anyio
ATTACK, BAN_S = "/%", 1.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Firewall:
    """Bans the address that sent the attack for a while; how it treats the banned is `ban`."""

    ban: Callable[[Streams], Coroutine[Any, Any, None]]
    banned: dict[str, float] = field(default_factory=dict)
    got: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        whose = writer.get_extra_info("peername")[0]
        if self.banned.get(whose, 0.0) > time.monotonic():
            return await self.ban((reader, writer))
        got = await read_request(reader)
        self.got.append((whose, got.path))
        if got.path == ATTACK:
            self.banned[whose] = time.monotonic() + BAN_S
            return None
        writer.write(http_answer(200, b"here"))
        return None


async def closes(streams: Streams) -> None:
    """Takes the connection and closes it."""


async def resets(streams: Streams) -> None:
    sock = streams[1].get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    streams[1].transport.abort()


async def is_silent(streams: Streams) -> None:
    await asyncio.sleep(30)


async def refuses(streams: Streams) -> None:
    await read_request(streams[0])
    streams[1].write(http_answer(403, b"banned"))


async def is_busy(streams: Streams) -> None:
    await read_request(streams[0])
    streams[1].write(http_answer(503, b"slow down"))


@pytest.mark.parametrize("ban", [closes, resets, is_busy, is_silent])
async def test_a_caller_who_is_banned_is_locked_out_and_the_server_has_not_ended(
    ban: Callable[[Streams], Coroutine[Any, Any, None]],
) -> None:
    wall = Firewall(ban)
    async with bench(raw=wall) as it:
        result = await it.run("qa_fetch", {"url": it.site.url + ATTACK, "alive": f"{it.site.url}/"})
    assert (result["ended"], result["locked_out"], result["error_class"]) == (False, True, "busy")
    assert "; another caller had one (the request itself: " in result["error"]
    assert "; the next one: " in result["error"]
    assert result["silent_ms"] > BAN_S * 700
    assert {whose for whose, path in wall.got if path == ATTACK} == {"127.0.0.1"}


async def test_a_ban_by_403_is_an_answer() -> None:
    async with bench(raw=Firewall(refuses)) as it:
        result = await it.run("qa_fetch", {"url": it.site.url + ATTACK, "alive": f"{it.site.url}/"})
    assert (result["ended"], result["locked_out"], result["error_class"]) == (False, False, "unreachable")


async def test_a_server_that_hangs_in_one_worker_has_not_ended() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await read_request(reader)).path == ATTACK:
            await asyncio.sleep(1.0)
        else:
            writer.write(http_answer(200, b"here"))

    async with bench(raw=serve) as it:
        result = await it.run("qa_fetch", {"url": it.site.url + ATTACK, "alive": f"{it.site.url}/"})
    assert (result["ended"], result["locked_out"]) == (False, False)


def said(text: object, **headers: str) -> http.HttpReply:
    body = text if isinstance(text, str) else json.dumps(text)
    return http.HttpReply(
        200, {name.replace("_", "-"): value for name, value in headers.items()}, body.encode(), 1.0
    )


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        (said({"uptime": 812.5}), said({"uptime": 0.4}), True),
        (said({"uptime_seconds": 80}), said({"uptime_seconds": 88}), False),
        (said("", x_uptime="80"), said("", x_uptime="1"), True),
        (
            said("process_start_time_seconds 1.764216001e+09"),
            said("process_start_time_seconds 1.764216555e+09"),
            True,
        ),
        (said({"started_at": "2026-11-27T04:00:00Z"}), said({"started_at": "2026-11-27T04:50:00Z"}), True),
        (said({"boot_id": "a1b2c3d4"}), said({"boot_id": "a1b2c3d4"}), False),
        (said("We started in 2019"), said("We started in 2020"), False),
        (said("hello"), said("hello"), False),
    ],
)
def test_a_restart_is_seen_by_the_server_s_own_words(
    before: http.HttpReply, after: http.HttpReply, anew: bool
) -> None:
    assert restarted(before, after) is anew


async def test_a_restart_that_is_seen_counts_though_a_witness_was_answered() -> None:
    """Behind an address that refuses us while another one is served."""
    wall, began = Firewall(closes), time.monotonic()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        whose = writer.get_extra_info("peername")[0]
        if wall.banned.get(whose, 0.0) > time.monotonic():
            return
        got: Got = await read_request(reader)
        if got.path == ATTACK:
            wall.banned[whose] = time.monotonic() + BAN_S
            return
        up = 900 if time.monotonic() < min([began + 99, *wall.banned.values()]) else 1
        writer.write(http_answer(200, json.dumps({"uptime": up}).encode()))

    async with bench(raw=serve) as it:
        result = await it.run("qa_fetch", {"url": it.site.url + ATTACK, "alive": f"{it.site.url}/"})
    assert (result["ended"], result["locked_out"]) == (True, False)


async def test_the_witness_is_not_for_others_to_ask_for() -> None:
    async with bench() as it:
        asked = {"url": it.site.url, "headers": {"X-QA-Witness": "1"}}
        result = await it.run("qa_fetch", asked)
    assert (result["error_class"], it.site.got) == ("bad_request", [])


CRASHING = """
import http.server, os, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/%": os._exit(7)
        self.send_response(200); self.send_header("content-length", "4"); self.end_headers()
        self.wfile.write(b"here")
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer.allow_reuse_address = True
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
"""


async def test_a_process_that_dies_and_is_started_again_has_ended() -> None:
    ended, running = 0, True
    async with bench() as it:
        it.site.leave()
        port = it.site.port

        async def supervise() -> None:
            nonlocal ended
            while running:
                process = await asyncio.create_subprocess_exec(sys.executable, "-c", CRASHING, str(port))
                procs.append(process)
                ended += await process.wait() == 7
                await asyncio.sleep(0.3)

        procs: list[asyncio.subprocess.Process] = []
        supervisor = asyncio.create_task(supervise())
        try:
            result = await it.run("qa_fetch", {"url": it.site.url + ATTACK, "alive": f"{it.site.url}/"})
        finally:
            running = False
            supervisor.cancel()
            procs[-1].kill()
            await procs[-1].wait()
    assert (result["ended"], result["locked_out"], ended) == (True, False, 1)
