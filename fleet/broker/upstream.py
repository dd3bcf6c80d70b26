"""The node behind the broker: one JSON-RPC POST at a time on connections that are kept."""

from __future__ import annotations

import asyncio
import functools
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from fleet.broker.rpc_policy import Denied

_CHUNK = 1 << 16
_MAX_IDLE = 4


@functools.cache
def tls() -> ssl.SSLContext:
    """The machine's trust store, loaded once and only when something speaks https."""
    return ssl.create_default_context()


@dataclass(slots=True)
class _Link:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    h11: h11.Connection
    used: bool = False


class RpcUpstream:
    """POSTs to one URL. The operator chose it, so its address is not checked."""

    def __init__(self, url: str, *, max_response: int) -> None:
        parts = urlsplit(url)
        self._tls = parts.scheme == "https"
        self._host, self._authority = parts.hostname or "", parts.netloc
        self._port = parts.port or (443 if self._tls else 80)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._max_response = max_response
        self._idle: list[_Link] = []

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; Denied `unreachable` without one."""
        link = self._idle.pop() if self._idle else await self._open()
        try:
            return await self._exchange(link, body)
        except (OSError, h11.RemoteProtocolError):
            if not link.used:
                raise Denied("unreachable", "the chain's node closed the connection", status=502) from None
        # a kept connection may have been closed meanwhile; all requests are reads, so retry
        link = await self._open()
        try:
            return await self._exchange(link, body)
        except (OSError, h11.RemoteProtocolError):
            raise Denied("unreachable", "the chain's node closed the connection", status=502) from None

    async def aclose(self) -> None:
        for link in self._idle:
            link.writer.transport.abort()
        self._idle.clear()

    async def _open(self) -> _Link:
        try:
            reader, writer = await asyncio.open_connection(
                self._host, self._port, ssl=tls() if self._tls else None
            )
        except OSError:
            raise Denied("unreachable", "the chain's node does not answer", status=502) from None
        return _Link(reader, writer, h11.Connection(h11.CLIENT))

    async def _exchange(self, link: _Link, body: bytes) -> tuple[int, bytes]:
        try:
            status, answer = await self._send(link, body)
        except BaseException:
            link.writer.transport.abort()
            raise
        if (
            link.h11.our_state is h11.DONE
            and link.h11.their_state is h11.DONE
            and len(self._idle) < _MAX_IDLE
        ):
            link.h11.start_next_cycle()
            link.used = True
            self._idle.append(link)
        else:
            link.writer.transport.abort()
        return status, answer

    async def _send(self, link: _Link, body: bytes) -> tuple[int, bytes]:
        headers = [
            ("host", self._authority),
            ("content-type", "application/json"),
            ("accept-encoding", "identity"),
            ("content-length", str(len(body))),
        ]
        head = h11.Request(method="POST", target=self._path, headers=headers)
        link.writer.write(
            (link.h11.send(head) or b"")
            + (link.h11.send(h11.Data(data=body)) or b"")
            + (link.h11.send(h11.EndOfMessage()) or b"")
        )
        await link.writer.drain()
        status, parts, size = 0, [], 0
        while not isinstance(event := await self._event(link), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                size += len(event.data)
                if size > self._max_response:
                    raise Denied(
                        "too-large", f"the node answered more than {self._max_response} bytes", status=502
                    )
                parts.append(bytes(event.data))
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError
        return status, b"".join(parts)

    async def _event(self, link: _Link) -> object:
        while (event := link.h11.next_event()) is h11.NEED_DATA:
            link.h11.receive_data(await link.reader.read(_CHUNK))
        return event
