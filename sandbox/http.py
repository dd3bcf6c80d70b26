"""The one HTTP module inside a jail: it speaks only to the broker, under strict deadlines.

Every reply is bounded in time (one total deadline), in size (before and after decompression) and in headers;
redirects are reported, never followed. A nonce distinguishes the broker's own answers from
the platform's: the broker removes it from forwarded requests, so a platform cannot forge a refusal.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import zlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.spec import BROKER, Mistake

if "ssl" not in sys.modules:  # the broker does TLS: without this, http.client loads OpenSSL (8 of 25 ms)
    sys.modules["ssl"] = None  # type: ignore[assignment]
    import http.client

    del sys.modules["ssl"]
else:
    import http.client

MAX_BODY = 4 << 20
"""Bytes of one body, compressed and decompressed alike."""

MARK = "x-qa-once"
"""Header with the nonce; the broker's own answers echo it."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back. `headers` has lower-case names, repeated ones joined by `, `."""

    status: int
    headers: dict[str, str]
    body: bytes
    latency_ms: float
    by_broker: bool = False

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`target` is an absolute URL for the platform, a path for the broker's own services."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    encodings: str = "gzip, deflate"
    cap: int = MAX_BODY

    @property
    def is_service(self) -> bool:
        """Whether it is for the broker itself."""
        return self.target.startswith("/")


class _Reply(http.client.HTTPResponse):
    """A response that knows how long its request waited for its turn: the broker says so first, by a status
    100 with the milliseconds in place of its reason.

    That wait is ours, so it is not part of a latency.
    """

    waited_ms: float | None = None

    def _read_status(self) -> tuple[str, int, str]:
        found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
        if found[1] == http.client.CONTINUE and self.waited_ms is None:  # a second one is the platform's
            self.waited_ms = float(found[2])
        return found


class _Socket(socket.socket):
    """A socket whose every read and write gets what is left of one deadline, so a slow drip ends too."""

    deadline: Deadline

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(self.deadline.left())
        return super().recv_into(*args, **kwargs)

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.settimeout(self.deadline.left())
        super().sendall(data, flags)


def absolute(url: str, pointer: str = "/args/url") -> str:
    """The URL in the one spelling that the broker takes; Mistake when it is invalid."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
    except (ValueError, UnicodeError):
        raise Mistake(f"{pointer}: not a URL") from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise Mistake(f"{pointer}: expected http(s)://host[:port]/path")
    if parts.username is not None or parts.password is not None:
        raise Mistake(f"{pointer}: a URL with user information")
    host = f"[{host}]" if ":" in host else host
    authority = f"{host}:{port}" if port is not None else host
    query = f"?{_ascii(parts.query)}" if parts.query else ""
    return f"{parts.scheme}://{authority}{_ascii(parts.path) or '/'}{query}"


def send(request: HttpRequest, deadline: Deadline) -> HttpReply:
    """One exchange. Failure: `unreachable`, `timeout`, `busy`, `too_large`, `garbage`; Broken without a
    broker."""
    started = time.monotonic()
    sock = _connect(deadline)
    once = os.urandom(8).hex()
    connection = http.client.HTTPConnection("broker")
    connection.sock = sock
    response = _Reply(sock, method=request.method)
    try:
        _write(connection, request, once)
        response.begin()
        headers = _headers(response)
        body = _inflate(_read(response, request.cap), headers.get("content-encoding", ""), request.cap)
    except TimeoutError:
        if response.waited_ms is None and not request.is_service:
            raise Failure("busy", f"no turn at {_place(request)} in time: its rate is limited") from None
        raise Failure("timeout", f"no complete answer in time from {_place(request)}") from None
    except http.client.RemoteDisconnected:  # the broker answers for a platform that says nothing at all
        raise JailBroken("the broker closed without an answer") from None
    except ConnectionError:
        raise Failure("unreachable", f"connection to {_place(request)} closed without an answer") from None
    except http.client.InvalidURL:
        raise Mistake("not a URL") from None
    except http.client.IncompleteRead:
        raise Failure("garbage", f"{_place(request)} sent less than it announced") from None
    except (http.client.HTTPException, ValueError) as error:
        raise Failure(
            "garbage", f"{_place(request)} did not answer in HTTP: {type(error).__name__}"
        ) from None
    finally:
        response.close()  # else its buffer keeps the socket open
        sock.close()
    latency = max((time.monotonic() - started) * 1000 - (response.waited_ms or 0.0), 0.0)
    return HttpReply(response.status, headers, body, round(latency, 3), headers.get(MARK) == once)


def _connect(deadline: Deadline) -> _Socket:
    host, _, port = os.environ.get("QA_BROKER", BROKER).removeprefix("http://").partition(":")
    sock = _Socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.deadline = deadline
    sock.settimeout(deadline.left())
    try:
        sock.connect((host, int(port)))
    except OSError as error:
        sock.close()
        raise JailBroken(f"the broker is gone: {error.strerror or error}") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _write(connection: http.client.HTTPConnection, request: HttpRequest, once: str) -> None:
    host = "broker" if request.is_service else urlsplit(request.target).netloc
    connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
    defaults = {
        "host": host,
        "accept": "*/*",
        "accept-encoding": request.encodings,
        "user-agent": "qa-fleet/1",
    }
    given = {name.lower(): value for name, value in request.headers.items()}
    own = {"connection": "close", MARK: once} | ({} if request.is_service else {"expect": "100-continue"})
    for name, value in {**defaults, **given, **own}.items():
        connection.putheader(name, value)
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        connection.putheader("content-length", str(len(request.body)))
    connection.endheaders(request.body)


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    merged: dict[str, str] = {}
    for name, value in response.getheaders():
        key = name.lower()
        merged[key] = f"{merged[key]}, {value}" if key in merged else value
    return merged


def _read(response: http.client.HTTPResponse, cap: int) -> bytes:
    chunks, size = [], 0
    while True:
        chunk = response.read1(65_536)
        if not chunk:
            break
        size += len(chunk)
        if size > cap:
            raise Failure("too_large", f"more than {cap} bytes")
        chunks.append(chunk)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(chunks)


def _inflate(body: bytes, coding: str, cap: int) -> bytes:
    """The decoded body; a bomb stops at `cap` bytes, a second layer or an unknown coding is garbage."""
    coding = coding.strip().lower()
    if coding in ("", "identity") or not body:
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise Failure("garbage", f"content-encoding {coding[:40]!r} was not asked for")
    try:
        return _gunzip(body, cap) if coding != "deflate" else _undeflate(body, cap)
    except zlib.error:
        raise Failure("garbage", f"a body that is not {coding}") from None


def _gunzip(body: bytes, cap: int) -> bytes:
    out = b""
    while body:  # gzip allows several members, one after the other
        member = zlib.decompressobj(wbits=31)
        out += _bounded(member, body, cap - len(out))
        body = member.unused_data
    return out


def _undeflate(body: bytes, cap: int) -> bytes:
    try:
        return _bounded(zlib.decompressobj(), body, cap)
    except zlib.error:  # some servers mean the raw form
        return _bounded(zlib.decompressobj(wbits=-15), body, cap)


def _bounded(member: Any, body: bytes, room: int) -> bytes:
    out: bytes = member.decompress(body, room + 1)
    if len(out) > room:
        raise Failure("too_large", "a body that unpacks to too much")
    if not member.eof:
        raise zlib.error("truncated")
    return out


def _ascii(text: str) -> str:
    """Percent-encodes what is not ASCII, touches nothing else: tools send odd paths on purpose."""
    return "".join(c if c.isascii() else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text)


def _place(request: HttpRequest) -> str:
    return "the broker" if request.is_service else urlsplit(request.target).netloc
