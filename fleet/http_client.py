"""HTTP outside jails, by httpx: no environment settings, redirects or cookies; bounded answers.

httpx is imported when a client is made: that takes 0.1 s, and most commands make none.
"""

from __future__ import annotations

import functools
import re
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_GZIP_OR_ZLIB = 47
_LONGEST_S = 86_400.0
_HEADERS = {"user-agent": "qa-fleet/1", "accept-encoding": "identity"}
_METHOD, _JSON_RPC = re.compile(rb'"method": ?"(\w+)"'), b'"jsonrpc"'

Ended = Callable[[int, int, str], None]
"""Called once a request is over, with its status (0 without an answer), the bytes that the answer states for
its body, and why it has none or not a whole one."""
Began = Callable[[str, str, str, int], Ended]
"""Called before a request leaves, with verb, host, path without query or methods of JSON-RPC, and bytes of
its body; raises nothing."""
RECORD: ContextVar[Began | None] = ContextVar("record of requests", default=None)
"""Of this process, where it keeps one."""
BELONGS: ContextVar[str] = ContextVar("run that requests belong to", default="")


class HttpFailure(Exception):
    """No complete HTTP answer; the text is httpx's reason. `reached`: a connection was made."""

    def __init__(self, why: str, *, reached: bool = True) -> None:
        super().__init__(why)
        self.reached = reached


class AnswerTooLarge(HttpFailure):
    """The body exceeded the limit and was not read further."""


@functools.cache
def trust_store() -> ssl.SSLContext:
    """The machine's certificate authorities and httpx's own, loaded once."""
    return _trust_store()


def _trust_store() -> ssl.SSLContext:
    import httpx

    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def open_client(url: str, *, socket: str = "", comment: str = "", certificate: str = "") -> httpx.AsyncClient:
    """A client for one URL, through a Unix socket if named. The caller sets the deadline; `comment` follows
    the User-Agent. `certificate` is a file with a certificate of ours and its key, for who asks for one.

    The deadline must cover the whole exchange; a time limit per read would never end a slow drip.
    """
    import httpx

    line = httpx.AsyncHTTPTransport(verify=_context(url, certificate), trust_env=False, uds=socket or None)
    return httpx.AsyncClient(
        transport=line,
        event_hooks={"request": [put_on_record]},
        headers={**_HEADERS, "user-agent": _HEADERS["user-agent"] + comment},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # accept none
        timeout=None,
        trust_env=False,
        follow_redirects=False,
    )


async def put_on_record(request: httpx.Request) -> None:
    """An event hook of a client, of httpx or httpx2: RECORD gets each request, and how it ended."""
    if (began := RECORD.get()) is None:
        return
    verb, what, content = request.method, request.url.path, await request.aread()
    if _JSON_RPC in content:  # in a text it has backslashes
        verb, what = "RPC", ",".join(one.decode() for one in dict.fromkeys(_METHOD.findall(content)))
    ended = began(verb, request.url.netloc.decode(), what, len(content))
    status, received, why = 0, 0, ""

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        """What httpcore does, step by step; a connection that fails has no `response_closed`."""
        nonlocal status, received, why
        part, step, how = event.split(".")
        if how == "failed":
            why = _reason(info["exception"])
        elif (step, how) == ("receive_response_headers", "complete"):
            _, status, _, headers = info["return_value"]
            received = next((int(size) for name, size in headers if name.lower() == b"content-length"), 0)
        if (step == "response_closed" and how != "started") or (part == "connection" and how == "failed"):
            ended(status, received, why)

    request.extensions["trace"] = trace


@contextmanager
def on_record(verb: str, host: str, what: str, sent: int = 0) -> Iterator[Callable[[str], None]]:
    """The same for what is asked by other means than these clients; what it gives is called with why it
    failed, unless an exception says so."""
    began, why = RECORD.get(), ""

    def failed(reason: str) -> None:
        nonlocal why
        why = reason

    ended = began(verb, host, what, sent) if began else None
    try:
        yield failed
    except BaseException as error:
        why = _reason(error)
        raise
    finally:
        if ended:
            ended(0, 0, why)


async def look(client: httpx.AsyncClient, url: str) -> int:
    """The status that a GET is answered with; the body is not read. Raises HttpFailure."""
    import httpx

    try:
        async with client.stream("GET", url) as answer:
            return answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failure(error) from error


async def get(client: httpx.AsyncClient, url: str, *, limit: int) -> tuple[int, Mapping[str, str], bytes]:
    """As `send`, a GET."""
    return await send(client, "GET", url, b"", {}, limit=limit)


async def post(
    client: httpx.AsyncClient, url: str, content: bytes, headers: Mapping[str, str], *, limit: int
) -> tuple[int, bytes]:
    """Post as `send` does, and return status and raw body. With limit 0 the connection is not kept."""
    status, _, body = await send(client, "POST", url, content, headers, limit=limit)
    return status, body


async def send(  # noqa: PLR0913  a request as HTTP has it
    client: httpx.AsyncClient,
    method: str,
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    *,
    limit: int,
    unzip: bool = False,
) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers (names in lower case) and raw body of an answer; with limit 0 the body is not read.

    `unzip`: a body that was compressed unasked is read within the same limit.

    Raises AnswerTooLarge above `limit` bytes, and HttpFailure for every exception of httpx.
    """
    import httpx

    try:
        async with client.stream(method, url, content=content, headers=headers) as answer:
            found = {name.lower(): value for name, value in answer.headers.items()}
            return answer.status_code, found, await _body(answer, limit, unzip=unzip)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failure(error) from error


async def _body(answer: httpx.Response, limit: int, *, unzip: bool) -> bytes:
    body = bytearray()
    if not limit:
        return b""
    plain = unzipping(answer.headers.get("content-encoding", "") if unzip else "")
    if plain is None:
        raise HttpFailure("an answer compressed in a way that was not asked for")
    try:
        async for part in answer.aiter_raw():
            body += plain(part, limit + 1)
            if len(body) > limit:
                raise AnswerTooLarge(f"more than {limit} bytes")
    except zlib.error:
        raise HttpFailure("a compressed answer that cannot be read") from None
    return bytes(body)


def unzipping(encoding: str) -> Callable[[bytes, int], bytes] | None:
    """Reads the parts of a body, each to at most so many bytes; None for an encoding that is not read.

    Some servers compress unasked: gzip and deflate are read. zlib.error for a part that is neither.
    """
    if encoding.lower() in ("", "identity"):
        return lambda part, _limit: part
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        return None
    stream = zlib.decompressobj(wbits=_GZIP_OR_ZLIB)
    return stream.decompress


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float:
    """Seconds of a Retry-After header, as a number or a date (RFC 9110, 10.2.3), at most a day; 0 without
    one that can be read."""
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return min(float(asked[:9]), _LONGEST_S)
    try:
        at = parsedate_to_datetime(asked)
    except ValueError:
        return 0.0
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return min(max((at - (now or datetime.now(UTC))).total_seconds(), 0.0), _LONGEST_S)


def _context(url: str, certificate: str) -> ssl.SSLContext:
    """A TLS context. For plain HTTP it trusts no authority: it costs nothing, and a stray https:// fails."""
    if not url.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not certificate:
        return trust_store()
    context = _trust_store()
    context.load_cert_chain(certificate)
    return context


def _failure(error: Exception) -> HttpFailure:
    import httpx

    reached = not isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.InvalidURL)
    return HttpFailure(f"{type(error).__name__}: {error}", reached=reached)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
