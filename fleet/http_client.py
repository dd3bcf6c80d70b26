"""HTTP outside jails, by httpx: no environment settings, redirects or cookies; bounded answers.

httpx is imported when a client is made: that takes 0.1 s, and most commands make none.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_HEADERS = {"user-agent": "qa-fleet/1", "accept-encoding": "identity"}


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
    import httpx

    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


def open_client(url: str, *, socket: str = "") -> httpx.AsyncClient:
    """A client for one URL, through a Unix socket if named. The caller sets the deadline.

    The deadline must cover the whole exchange; a time limit per read would never end a slow drip.
    """
    import httpx

    line = httpx.AsyncHTTPTransport(verify=_context(url), trust_env=False, uds=socket or None)
    return httpx.AsyncClient(
        transport=line,
        headers=_HEADERS,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # accept none
        timeout=None,
        trust_env=False,
        follow_redirects=False,
    )


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


async def send(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    *,
    limit: int,
) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers (names in lower case) and raw body of an answer; with limit 0 the body is not read.

    Raises AnswerTooLarge above `limit` bytes, and HttpFailure for every exception of httpx.
    """
    import httpx

    try:
        async with client.stream(method, url, content=content, headers=headers) as answer:
            found = {name.lower(): value for name, value in answer.headers.items()}
            return answer.status_code, found, await _body(answer, limit)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failure(error) from error


async def _body(answer: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    if limit:
        async for part in answer.aiter_raw():
            body += part
            if len(body) > limit:
                raise AnswerTooLarge(f"more than {limit} bytes")
    return bytes(body)


def _context(url: str) -> ssl.SSLContext:
    """A TLS context. For plain HTTP it trusts no authority: it costs nothing, and a stray https:// fails."""
    return trust_store() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _failure(error: Exception) -> HttpFailure:
    import httpx

    reached = not isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.InvalidURL)
    return HttpFailure(f"{type(error).__name__}: {error}", reached=reached)
