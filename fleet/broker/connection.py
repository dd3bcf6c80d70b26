"""The broker's side of one connection from a jail: bounded reads, answers of the broker itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

import h11

from fleet.broker.egress_policy import EgressPolicy
from fleet.broker.rpc_policy import Denied

MARK = b"x-qa-once"
"""Nonce of a request, echoed in the broker's own answers and never sent on (sandbox/http.py)."""

WITNESS = b"x-qa-witness"
"""Asks for another way to the host than that of other requests; never sent on (sandbox/pages/endings.py)."""

NOBODYS = b"x-qa-host"
"""What a host is called instead of its name, for a name that nobody has (sandbox/pages/page_request.py)."""

UPGRADE = b"x-qa-upgrade"
"""Asks the broker to offer a change to another protocol, by its name (sandbox/pages/page_request.py)."""

_CHUNK = 1 << 16
_LINGER_S = 1.0
_RESET = struct.pack("ii", 1, 0)
_QUICKACK = getattr(socket, "TCP_QUICKACK", None)


class JailConnection:
    """One HTTP/1.1 connection. h11 does the parsing; time, size and count are kept here."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, policy: EgressPolicy
    ) -> None:
        self.reader, self.writer = reader, writer
        self.served = 0
        self.relayed = False
        """Set once an upstream's bytes went out: after that, we cannot send our own answer."""
        self._policy = policy
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=policy.max_head)
        self._mark = b""
        sock = writer.get_extra_info("socket")
        if sock is not None and _QUICKACK is not None:
            # no Nagle's delay: some clients send head and body in two packets (jail.md 4.21)
            sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    async def head(self) -> h11.Request | None:
        """The next request's head, or None when the client is done. A slow one runs into TimeoutError."""
        if self.served:
            self._h11.start_next_cycle()
            self.relayed = False
        async with asyncio.timeout(self._policy.idle_s if self.served else self._policy.head_s):
            event = await self._event()
        if not isinstance(event, h11.Request):
            return None
        self.served += 1
        self._mark = header(event, MARK)
        size = len(event.target) + sum(len(name) + len(value) + 4 for name, value in event.headers)
        if size > self._policy.max_head:  # h11 holds its limit only while a head is incomplete
            raise Denied("http", f"a head above {self._policy.max_head} bytes", status=431)
        if header(event, b"transfer-encoding"):
            raise Denied("transfer-encoding", "send a Content-Length", status=411)
        if int(header(event, b"content-length") or b"0") > self._policy.max_body:
            raise Denied("body", f"a body above {self._policy.max_body} bytes", status=413)
        return event

    async def go_on(self, waited_s: float) -> None:
        """Tell a client that waits for `100 Continue` that its turn came, and the time that it took."""
        if self._h11.they_are_waiting_for_100_continue:
            waited = b"%.3f" % (waited_s * 1000)
            told = h11.InformationalResponse(status_code=100, headers=[], reason=waited)
            self.writer.write(self._h11.send(told) or b"")
            await self.writer.drain()

    async def body(self) -> bytes:
        """The whole body; its size was checked with the head."""
        parts: list[bytes] = []
        while isinstance(event := await self._event(), h11.Data):
            parts.append(bytes(event.data))
        return b"".join(parts)

    @staticmethod
    def encode(payload: Mapping[str, Any] | bytes) -> bytes:
        """The body of an answer; bytes are JSON already."""
        return payload if isinstance(payload, bytes) else json.dumps(payload).encode()

    async def answer(self, status: int, body: bytes, *, close: bool = False) -> None:
        """A JSON answer of the broker itself."""
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *([(MARK, self._mark)] if self._mark else []),
            *([(b"connection", b"close")] if close else []),
        ]
        out = self._h11.send(h11.Response(status_code=status, headers=headers)) or b""
        out += self._h11.send(h11.Data(data=body)) or b""
        out += self._h11.send(h11.EndOfMessage()) or b""
        self.writer.write(out)
        await self.writer.drain()

    async def relay(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        """One part of another server's answer, framed anew; from the first on, no answer of our own."""
        self.relayed = True
        self.writer.write(self._h11.send(event) or b"")
        await self.writer.drain()

    async def refuse(self, denied: Denied) -> None:
        """Send the reason and end the connection; briefly drain what the client still sends.

        Closing on unread bytes would reset the connection and take the answer with it.
        """
        if self.relayed or self._h11.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.cut()  # part of another answer is out already
            return
        await self.answer(denied.status, self.encode(explain(denied)), close=True)
        self.writer.write_eof()
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_LINGER_S):
                await self.drain()

    def cut(self) -> None:
        """Reset the connection: an orderly end would make half an answer look complete."""
        sock = self.writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.writer.transport.abort()

    async def drain(self) -> None:
        """Drain until the client closes."""
        while await self.reader.read(_CHUNK):
            pass

    @property
    def can_go_on(self) -> bool:
        """Whether another request may follow on this connection."""
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    async def _event(self) -> Any:  # noqa: ANN401  h11's events have no common type
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            self._h11.receive_data(await self.reader.read(_CHUNK))
        return event


def header(request: h11.Request, name: bytes) -> bytes:
    """The value of a header that may occur once; b"" if absent."""
    return next((value for key, value in request.headers if key == name), b"")


def explain(denied: Denied) -> dict[str, Any]:
    """A denial as data that an agent can read."""
    kind = denied.rule if denied.rule in ("unreachable", "timeout", "busy") else "refused"
    return {"error": str(denied), "error_class": kind, "rule": denied.rule}
