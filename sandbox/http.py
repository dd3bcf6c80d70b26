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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sandbox.content_coding import decoded
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

MAX_HEAD, MAX_LINES, MAX_INTERIM = 256 << 10, 1_000, 32
"""Bytes and lines of one head, answers before the final one; browsers and curl stop at about as much."""

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
    enough: Callable[[bytes], bool] | None = None
    """Asked with each piece of the body whether nothing more needs to be read."""

    @property
    def is_service(self) -> bool:
        """Whether it is for the broker itself."""
        return self.target.startswith("/")


class FinalReply(http.client.HTTPResponse):
    """A response that is read as browsers read it: interim answers (1xx) are passed over until the final one,
    a head may be long, and a line of it without a colon is ignored."""

    headers: http.client.HTTPMessage

    def begin(self) -> None:
        room = MAX_HEAD
        for _ in range(MAX_INTERIM):
            version, status, reason = self._read_status()  # type: ignore[attr-defined]
            fields = _fields(self.fp, room)
            room -= sum(len(name) + len(value) for name, value in fields)
            if not self.interim(status, reason):
                break
        else:
            raise http.client.HTTPException(f"more than {MAX_INTERIM} interim answers")
        if not version.startswith("HTTP/1.") and version != "HTTP/0.9":
            raise http.client.UnknownProtocol(version)
        self.code = self.status = status
        self.reason, self.version = reason.strip(), 10 if version < "HTTP/1.1" else 11
        self.headers = self.msg = http.client.HTTPMessage()
        for name, value in fields:
            self.headers[name] = value
        last = self.headers.get("transfer-encoding", "").lower().rpartition(",")[2]
        self.chunked = last.strip() == "chunked"
        self.chunk_left, self.will_close = None, True
        length = self.headers.get("content-length", "").strip()
        self.length = int(length) if not self.chunked and length.isascii() and length.isdigit() else None
        if status < 200 or status in (204, 304) or self._method == "HEAD":  # type: ignore[attr-defined]
            self.length = 0

    def interim(self, status: int, reason: str) -> bool:  # noqa: ARG002  the port has it
        """Whether another answer follows (RFC 9110, 15.2); 101 is the last one of HTTP."""
        return status < 200 and status != http.client.SWITCHING_PROTOCOLS


class _Reply(FinalReply):
    """A response that knows how long its request waited for its turn: the broker says so first, by a status
    100 with the milliseconds in place of its reason.

    That wait is ours, so it is not part of a latency.
    """

    waited_ms: float | None = None
    heard = False
    """Whether the platform sent anything."""

    def interim(self, status: int, reason: str) -> bool:
        if status == http.client.CONTINUE and self.waited_ms is None:  # a second one is the platform's
            self.waited_ms = float(reason)
        else:
            self.heard = True
        return super().interim(status, reason)


def _fields(stream: Any, room: int) -> list[tuple[str, str]]:  # noqa: ANN401  the socket's own signature
    """The header fields up to the empty line; HTTPException for more than `room` bytes or MAX_LINES."""
    fields = list[tuple[str, str]]()
    for number in range(MAX_LINES + 1):
        line = stream.readline(room + 1)
        if line in (b"\r\n", b"\n", b""):
            break
        room -= len(line)
        if room < 0 or number == MAX_LINES:
            raise http.client.HTTPException(f"a head of more than {MAX_HEAD} bytes or {MAX_LINES} lines")
        name, colon, value = line.decode("latin-1").partition(":")
        if line[:1] in b" \t" and fields:  # a folded line (RFC 9112, 5.2)
            fields[-1] = fields[-1][0], f"{fields[-1][1]} {line.decode('latin-1').strip()}"
        elif colon and name.strip():
            fields.append((name.strip(), value.strip()))
    return fields


class _Socket(socket.socket):
    """A socket whose every read and write gets what is left of one deadline, so a slow drip ends too."""

    deadline: Deadline

    def recv_into(self, *args: Any, **kwargs: Any) -> int:  # noqa: ANN401  the socket's own signature
        self.settimeout(self.deadline.left())
        return super().recv_into(*args, **kwargs)

    def sendall(self, data: Any, flags: int = 0) -> None:  # noqa: ANN401  the socket's own signature
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
        found: dict[str, list[str]] = {}
        for name, value in response.getheaders():
            found.setdefault(name.lower(), []).append(value)
        headers = {name: ", ".join(values) for name, values in found.items()}
        body = decoded(_read(response, request), headers.get("content-encoding", ""), request.cap)
    except TimeoutError:
        if response.waited_ms is None and not request.is_service:
            raise Failure("busy", f"no turn at {_place(request)} in time: its rate is limited") from None
        raise Failure("timeout", f"no complete answer in time from {_place(request)}") from None
    except http.client.RemoteDisconnected:  # the broker answers for a platform that says nothing at all
        if not response.heard:
            raise JailBroken("the broker closed without an answer") from None
        raise Failure("garbage", f"{_place(request)} sent no answer after an interim one") from None
    except ConnectionError:
        raise Failure("unreachable", f"connection to {_place(request)} closed without an answer") from None
    except http.client.InvalidURL:
        raise Mistake("not a URL") from None
    except http.client.IncompleteRead:
        raise Failure("garbage", f"{_place(request)} sent less than it announced") from None
    except (http.client.HTTPException, ValueError) as error:
        raise Failure("garbage", f"{_place(request)} did not answer in HTTP: {_why(error)}") from None
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


def _read(response: http.client.HTTPResponse, request: HttpRequest) -> bytes:
    chunks, size = [], 0
    while True:
        chunk = response.read1(65_536)
        if not chunk:
            break
        size += len(chunk)
        if size > request.cap:
            raise Failure("too_large", f"more than {request.cap} bytes")
        chunks.append(chunk)
        if request.enough is not None and request.enough(chunk):
            return b"".join(chunks)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(chunks)


def _ascii(text: str) -> str:
    """Percent-encodes what is not ASCII, touches nothing else: tools send odd paths on purpose."""
    return "".join(c if c.isascii() else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text)


def _why(error: Exception) -> str:
    """What was odd; our own words, never the platform's."""
    own = type(error) is http.client.HTTPException
    return str(error) if own else type(error).__name__


def _place(request: HttpRequest) -> str:
    return "the broker" if request.is_service else urlsplit(request.target).netloc
