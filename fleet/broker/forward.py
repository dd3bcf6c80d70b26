"""The way to a listed host: a rewritten request, one dial to a checked address, bytes back untouched."""

from __future__ import annotations

import asyncio
import functools
import re
import ssl
import time
from collections.abc import Callable, Coroutine
from datetime import datetime

import h11

from fleet.broker.connection import MARK, NOBODYS, UPGRADE, WITNESS, JailConnection, header
from fleet.broker.egress_policy import EgressPolicy, EgressTarget, Origin
from fleet.broker.egress_record import EgressEntry
from fleet.broker.rpc_policy import Denied
from fleet.http_client import retry_after
from fleet.unanswered import RESET, unanswered

Meter = Callable[[int], None]
"""Called with byte counts before they reach the jail; raises Denied beyond a cap."""

_HEAD = re.compile(rb"HTTP/1\.[01] (\d{3})[^\r\n]{0,200}(.{0,16384}?)\r?\n\r?\n", re.S)
_RETRY_AFTER = re.compile(rb"\nretry-after:[ \t]*([^\r\n]{1,60}?)[ \t]*(?:\r|\n|$)", re.I)
_CHUNK = 1 << 16
MAX_KEPT = 32_768
"""Bytes of an answer that are kept for a signature."""
OTHER_LOOPBACK = "127.0.0.2"
"""An address of this machine from which nothing else is asked."""
_NOT_SENT_ON = frozenset(
    (
        b"connection",
        b"proxy-connection",
        b"proxy-authorization",
        b"keep-alive",
        b"te",
        b"trailer",
        b"upgrade",
        b"transfer-encoding",
        b"expect",
        b"host",
        b"content-length",
        b"forwarded",
        b"x-forwarded-for",
        MARK,
        WITNESS,
        NOBODYS,
        UPGRADE,
    )
)
"""Hop-by-hop fields, and those that the broker sets itself."""
_BETWEEN = rb"[ <>^|%\[\"'=:/]"
NO_ONES = re.compile(
    rb"qa[0-9a-f]{2,20}(?:\.evil\.test)?"
    rb"|(?=[^ <>^|%\[]{0,200}[ <>^|%\[])"
    rb"(?:" + _BETWEEN + rb"|(?:qa[0-9a-f]{2,20}|script|svg|onload|[abx])(?=" + _BETWEEN + rb"|\Z)){1,200}"
)
"""A Host that no server has: a word of ours, below a domain that is nobody's (RFC 6761) or by itself, or a
text that is no host (WHATWG URL, 3.2) and whose words are ours, too: however it is cut, no reader finds
another's name in it."""


@functools.cache
def tls() -> ssl.SSLContext:
    """The machine's trust store, loaded once and only when something speaks https."""
    return ssl.create_default_context()


class Broke(Exception):
    """The answer stopped midway; cut the jail's connection, so that it cannot look complete."""


async def relay(  # noqa: PLR0913  one request, as it came
    wire: JailConnection,
    request: h11.Request,
    body: bytes,
    entry: EgressEntry,
    target: EgressTarget,
    policy: EgressPolicy,
    meter: Meter,
    *,
    ask: Callable[[], None],
    kept: bytearray | None = None,
) -> None:
    """One request to one listed host; the answer's bytes go to the jail as they come.

    `entry` gets its status, the seconds to wait with the whole host by its head, of which alone anything is
    read here, and those for which the host has been strained.

    `ask` is called once connected, right before the request is sent; it raises Denied. `kept` gets the
    beginning of the answer.
    """
    ask()
    async with policy.connection(target.origin):
        witness = bool(header(request, WITNESS))
        reader, writer = await (dial_otherwise if witness else dial)(target.origin, policy, entry)
        try:
            ask()
            sent = rewritten(request, body, target, policy.comment)
            policy.carried(len(sent))
            writer.write(sent)
            await writer.drain()
            sent_at = time.monotonic()
            async with asyncio.timeout(policy.read_s):
                first = await reader.read(_CHUNK)
            ms = (time.monotonic() - sent_at) * 1000
            if not first:
                raise Denied(
                    "unreachable", f"{target.origin.host} closed without an answer: {RESET}", status=502
                )
            wire.relayed = True
            head = final_head(first)
            entry.status = int(head[1]) if head else 0
            entry.pause = policy.hold(target, entry.verb, entry.status, _asked_pause(head), body)
            entry.strained_s = policy.answered(target, entry.verb, entry.status, ms)
            entry.share = policy.share_of(target.origin)
            await _until_client_leaves(wire, _pump(first, reader, wire.writer, meter, kept))
        except OSError as error:
            why = unanswered(error) or error.strerror or RESET
            raise Denied("unreachable", f"{target.origin.host}: {why}", status=502) from None
        finally:
            writer.transport.abort()


def asked_pause(answer: bytes, now: datetime | None = None) -> float:
    """Seconds that the beginning of a final answer of 429 or 503 asks to wait; 0 for any other."""
    return _asked_pause(final_head(answer), now)


def final_head(answer: bytes) -> re.Match[bytes] | None:
    """The head of a final answer, from its first bytes; None when it is not whole there."""
    while (head := _HEAD.match(answer)) and head[1].startswith(b"1"):
        answer = answer[head.end() :]
    return head


def _asked_pause(head: re.Match[bytes] | None, now: datetime | None = None) -> float:
    if head is None or head[1] not in (b"429", b"503") or not (found := _RETRY_AFTER.search(head[2])):
        return 0.0
    return retry_after({"retry-after": found[1].decode("latin-1")}, now)


async def looked_up(origin: Origin, policy: EgressPolicy, entry: EgressEntry) -> tuple[str, ...]:
    """The addresses of a host, noted; Denied where a person has to confirm first what is new of them."""
    found = await policy.addresses(origin)
    entry.addresses, entry.ttl_s, entry.moved = found
    if found.moved and policy.known is not None and policy.known.holds:
        raise Denied("drift", f"{found.moved}: a person has to confirm that")
    return found.addresses


async def dial(
    origin: Origin, policy: EgressPolicy, entry: EgressEntry
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to an address that was resolved once and checked; exactly that one is dialled, and noted."""
    found = await looked_up(origin, policy, entry)
    entry.waited_s += await policy.turn_among(origin, found[0])
    secure, why = origin.scheme == "https", ""
    for address in found:
        entry.address = address
        try:
            async with asyncio.timeout(policy.connect_s):
                return await asyncio.open_connection(
                    address,
                    origin.port,
                    ssl=tls() if secure else None,
                    server_hostname=origin.host.strip("[]") if secure else None,
                )
        except OSError as error:
            why = unanswered(error) or type(error).__name__
    raise Denied("unreachable", f"{origin.host}:{origin.port} does not answer: {why}", status=502)


async def dial_otherwise(
    origin: Origin, policy: EgressPolicy, entry: EgressEntry
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect as another caller: from another address of this machine's loopback, or by the other family of
    addresses. Denied where a host can be asked in one way only."""
    found = await looked_up(origin, policy, entry)
    first = found[0]
    loops = first.startswith("127.")
    other = first if loops else next((one for one in found if (":" in one) != (":" in first)), "")
    if not other:
        raise Denied("witness", f"there is no other way to {origin.host}")
    secure, entry.address = origin.scheme == "https", other
    try:
        async with asyncio.timeout(policy.connect_s):
            return await asyncio.open_connection(
                other,
                origin.port,
                ssl=tls() if secure else None,
                server_hostname=origin.host.strip("[]") if secure else None,
                local_addr=(OTHER_LOOPBACK, 0) if loops else None,
            )
    except OSError as error:
        why = unanswered(error) or type(error).__name__
        raise Denied(
            "unreachable", f"{origin.host}:{origin.port} does not answer: {why}", status=502
        ) from None


def rewritten(request: h11.Request, body: bytes, target: EgressTarget, comment: str = "") -> bytes:
    """The rewritten request: host from the target, one hop, no field that only this hop may read; `comment`
    follows its User-Agent. It may offer a WebSocket: nothing that the jail sends later goes on."""
    named = {name.strip().lower() for name in header(request, b"connection").split(b",")}
    kept = [(k, v) for k, v in request.headers if k not in _NOT_SENT_ON and k not in named]
    if comment:
        agent = header(request, b"user-agent") + comment.encode()
        kept = [*((k, v) for k, v in kept if k != b"user-agent"), (b"user-agent", agent.strip())]
    called = header(request, NOBODYS)
    if called and not NO_ONES.fullmatch(called):
        raise Denied("host", "a Host that may be another server's is not sent")
    offer = header(request, UPGRADE)
    if offer and (offer != b"websocket" or request.method != b"GET"):
        raise Denied("upgrade", "only a WebSocket is offered, by GET")
    own = [(b"host", called or target.origin.authority.encode())]
    own += [(b"connection", b"Upgrade, close"), (b"upgrade", offer)] if offer else [(b"connection", b"close")]
    if body or request.method in (b"POST", b"PUT", b"PATCH"):
        own.append((b"content-length", str(len(body)).encode()))
    out = h11.Connection(h11.CLIENT)
    head = h11.Request(method=request.method, target=target.path.encode(), headers=own + kept)
    data = out.send(head) or b""
    return data + (out.send(h11.Data(data=body)) or b"" if body else b"")


async def _pump(
    first: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    meter: Meter,
    kept: bytearray | None,
) -> None:
    chunk = first or await reader.read(_CHUNK)
    while chunk:
        if kept is not None and len(kept) < MAX_KEPT:
            kept += chunk[:MAX_KEPT]
        try:
            meter(len(chunk))
            writer.write(chunk)
            await writer.drain()
            chunk = await reader.read(_CHUNK)
        except (OSError, Denied):
            raise Broke from None
    if writer.can_write_eof():
        writer.write_eof()


async def _until_client_leaves(wire: JailConnection, pump: Coroutine[None, None, None]) -> None:
    """Run the pump, but no longer than the client stays: an upstream need not close when it is done."""
    work, leave = asyncio.create_task(pump), asyncio.create_task(wire.drain())
    try:
        await asyncio.wait((work, leave), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        work.cancel()
        leave.cancel()
        await asyncio.gather(work, leave, return_exceptions=True)
