"""New blocks over web3's persistent WebSocket provider, from an untrusted server.

The provider runs on asyncio and reads the socket in its own task; this file hides both. The time to connect
and to get an answer, the size of a message and the read rate are bounded. As over HTTP, a proxy from the
environment is not used, and a redirect to another host is not followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

import anyio
from web3 import AsyncWeb3, WebSocketProvider
from web3.exceptions import ProviderConnectionError
from web3.types import RPCRequest, RPCResponse
from websockets.exceptions import ConnectionClosed

from fleet.errors import Unreachable
from fleet.http_client import on_record
from fleet.text import clean
from fleet.unanswered import unanswered
from sandbox import strict_json

ANSWER_S = 10.0
"""Deadline of the connection, and of the answer to the subscription."""
ALIVE_S = 20.0
"""Seconds between pings; a server that does not answer one for as long is gone."""
CLOSE_S = 2.0
LARGEST = 256 * 1024
"""Maximum bytes of a message; a new head takes one or two thousand."""
PACE_S = 0.005
"""Pause after each message: a flood is read at 200 a second, and waits in the sender's buffers, not ours."""


async def follow_heads(
    url: str, *, subscribed: Callable[[], None], head: Callable[[], None], answer_s: float = ANSWER_S
) -> NoReturn:
    """Call `subscribed` once, then `head` at each message; Unreachable says why the subscription was lost."""
    provider = _Provider(url, answer_s)
    with on_record("RPC", urlsplit(url).netloc.rpartition("@")[2], "eth_subscribe"):
        try:
            web3: AsyncWeb3[Any] = AsyncWeb3(provider, middleware=[])
            await provider.connect()
            await web3.eth.subscribe("newHeads")
            subscribed()
            async for _ in web3.socket.process_subscriptions():
                head()
        except Unreachable:
            raise
        except Exception as error:  # web3 raises any type on a hostile answer
            raise Unreachable(_words(error)) from None
        finally:
            with anyio.move_on_after(CLOSE_S, shield=True):
                for _ in range(2):  # the first call raises the reader task's error and leaves the socket open
                    with suppress(Exception):
                        await provider.disconnect()
        raise Unreachable("the server closed the connection")


class _Provider(WebSocketProvider):
    """web3's provider for one subscription: one request, one answer, then the subscription's messages."""

    def __init__(self, url: str, answer_s: float) -> None:
        place = urlsplit(url)
        bounds = {
            "open_timeout": answer_s,
            "close_timeout": CLOSE_S / 2,
            "ping_interval": ALIVE_S,
            "ping_timeout": ALIVE_S,
            "max_size": LARGEST,
            "compression": None,
            "proxy": None,
            "host": place.hostname,  # with these two a redirect to another origin is an error
            "port": place.port or (443 if place.scheme == "wss" else 80),
        }
        super().__init__(url, bounds, request_timeout=answer_s, max_connection_retries=1)
        self._answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def socket_recv(self) -> RPCResponse:
        """The next message of the subscription; Unreachable ends web3's reader task."""
        try:
            return cast(RPCResponse, await self._next())
        except Unreachable as error:
            if not self._answer.done():
                self._answer.set_exception(error)
                self._answer.exception()  # asyncio warns about an exception that was never retrieved
            raise

    async def recv_for_request(self, rpc_request: RPCRequest) -> RPCResponse:
        """The answer to the one request. web3 itself would poll for it at every turn of the event loop."""
        await asyncio.wait({self._answer}, timeout=self.request_timeout)
        if not self._answer.done():
            raise Unreachable(f"the server did not answer the subscription within {self.request_timeout:g} s")
        answer = self._answer.result()
        if answer.get("id") != rpc_request["id"]:
            raise Unreachable("the server answered with another id than the request")
        return cast(RPCResponse, answer)

    async def _next(self) -> dict[str, Any]:
        while True:
            assert self._ws is not None
            try:
                message: Any = strict_json.loads(await self._ws.recv())
            except ConnectionClosed as error:
                raise Unreachable(_words(error)) from None
            except ValueError:
                raise Unreachable("the server sent a message that is not JSON") from None
            if not isinstance(message, dict):
                raise Unreachable("the server sent a message that is not a JSON object")
            if message.get("method") != "eth_subscription":
                if self._answer.done():
                    raise Unreachable("the server sent an unexpected answer")
                self._answer.set_result(message)
                continue
            await asyncio.sleep(PACE_S)
            if self._answer.done():  # before that, nothing consumes messages, and they would pile up
                return message


def _words(error: Exception) -> str:
    """The error's text without the URL, whose path may hold a key."""
    cause = error.__cause__ or error if isinstance(error, ProviderConnectionError) else error
    said = unanswered(error) or f"{type(cause).__name__}: {cause}".rstrip(": ")
    return clean(said, 200)
