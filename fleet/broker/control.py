"""Controls of an outage: does our own egress work? Uses the same code as a jail's requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import h11

from fleet.broker.egress_policy import EgressPolicy, parse_target
from fleet.broker.egress_record import EgressEntry
from fleet.broker.forward import dial, rewritten
from fleet.broker.rpc_policy import Denied
from fleet.unanswered import RESET, TIMED_OUT, unanswered

_HEAD_S = 5.0


async def reach(url: str, deadline_s: float) -> str:
    """Returns "" when any answer arrived in time, else why not."""
    try:
        target = parse_target(url if urlsplit(url).path else f"{url}/")
        async with asyncio.timeout(deadline_s):
            policy = EgressPolicy(rpc="", hosts=frozenset({target.origin}))
            reader, writer = await dial(target.origin, policy, EgressEntry())
            try:
                headers = [(b"host", target.origin.authority.encode()), (b"user-agent", b"qa-fleet/1")]
                asked = h11.Request(method="GET", target=target.path.encode(), headers=headers)
                writer.write(rewritten(asked, b"", target))
                await writer.drain()
                return "" if await reader.read(1 << 12) else RESET
            finally:
                writer.transport.abort()
    except TimeoutError:
        return TIMED_OUT
    except OSError as error:
        return unanswered(error) or type(error).__name__
    except Denied as denied:
        return str(denied)


@asynccontextmanager
async def own_listener() -> AsyncIterator[str]:
    """The URL of our own page on loopback, served while the context lasts."""

    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(page, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
