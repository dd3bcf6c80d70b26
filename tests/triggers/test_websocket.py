"""One subscription over a WebSocket: what a server can do to it, and that it always ends with a reason."""

from __future__ import annotations

from contextlib import AsyncExitStack
from http import HTTPStatus

import anyio
import pytest
from anyio.abc import SocketStream
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from fleet.errors import Unreachable
from fleet.triggers.chain.websocket import follow_heads
from tests.triggers.conftest import running, until
from tests.triggers.servers import (
    HOSTILE,
    Behaviour,
    answered,
    early_flood,
    flood,
    hasty,
    notice,
    sends,
    server,
    silent,
)

pytestmark = pytest.mark.anyio


class Follower:
    """What a subscription tells: how often it began, how many heads came, why it ended."""

    def __init__(self, url: str, answer_s: float = 10.0) -> None:
        self.url, self.answer_s = url, answer_s
        self.began = self.heads = 0
        self.trouble = ""

    def subscribed(self) -> None:
        self.began += 1

    def head(self) -> None:
        self.heads += 1

    async def run(self) -> None:
        try:
            await follow_heads(self.url, subscribed=self.subscribed, head=self.head, answer_s=self.answer_s)
        except Unreachable as error:
            self.trouble = str(error)

    async def ends(self) -> str:
        with anyio.fail_after(20):
            await self.run()
        return self.trouble


async def ends(behave: Behaviour, answer_s: float = 10.0) -> Follower:
    async with server(behave) as url:
        follower = Follower(url, answer_s)
        await follower.ends()
        return follower


async def test_each_message_of_the_subscription_is_a_head() -> None:
    async with server(sends(notice(), notice(), notice(ident="0x2"), notice())) as url:
        follower = Follower(url)
        async with running(follower.run):
            await until(lambda: follower.heads == 3)
    assert (follower.began, follower.trouble) == (1, "")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("closing", "ConnectionClosed"),
        ("no JSON", "not JSON"),
        ("bytes", "not JSON"),
        ("oversize", "message too big"),
        ("deep", "not JSON"),
        ("a list", "not a JSON object"),
        ("a number", "not a JSON object"),
        ("another answer", "sent an unexpected answer"),
    ],
)
async def test_a_server_that_sends_nonsense_is_left(kind: str, reason: str) -> None:
    follower = await ends(HOSTILE[kind])
    assert reason in follower.trouble
    assert (follower.began, follower.heads) == (1, 0)


@pytest.mark.parametrize("kind", ["no head", "no params"])
async def test_a_head_that_is_not_one_ends_it_or_counts_as_one(kind: str) -> None:
    follower = await ends(HOSTILE[kind])
    assert follower.trouble
    assert follower.began == 1


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("an error", "no subscriptions"),
        ("another id", "another id than the request"),
        ("no result", ""),
        ("a subscription of nonsense", ""),
    ],
)
async def test_a_server_that_does_not_subscribe_is_left(kind: str, reason: str) -> None:
    follower = await ends(HOSTILE[kind])
    assert reason in follower.trouble
    assert follower.trouble
    assert "\x1b" not in follower.trouble
    assert (follower.began, follower.heads) == (0, 0)


async def test_a_server_that_closes_instead_of_an_answer_is_left() -> None:
    follower = await ends(hasty)
    assert "ConnectionClosed" in follower.trouble
    assert follower.began == 0


@pytest.mark.parametrize("behave", [silent, early_flood])
async def test_a_server_that_never_answers_is_left(behave: Behaviour) -> None:
    follower = await ends(behave, 2)
    assert follower.trouble in ("the server did not answer the subscription within 2 s", "no answer in time")
    assert (follower.began, follower.heads) == (0, 0)


async def test_a_server_that_accepts_and_says_nothing_at_all_is_left() -> None:
    async def accept(stream: SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, AsyncExitStack() as stack:
        await stack.enter_async_context(running(lambda: listener.serve(accept)))
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        assert "no answer in time" in await Follower(f"ws://127.0.0.1:{port}", 0.3).ends()


async def test_a_server_that_is_not_there_is_told_without_its_url() -> None:
    assert await Follower("ws://127.0.0.1:1/v3/key").ends() == "connection refused"


async def test_a_flood_is_read_slowly_and_keeps_nothing() -> None:
    async with server(flood) as url:
        follower = Follower(url)
        async with running(follower.run):
            await until(lambda: follower.heads >= 50)
    assert follower.trouble == ""


async def test_neither_a_redirect_to_another_host_nor_a_proxy_is_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached: list[str] = []

    async def elsewhere(peer: ServerConnection) -> None:
        reached.append("elsewhere")
        await answered(peer)

    async with server(elsewhere) as other:

        def redirect(peer: ServerConnection, request: Request) -> Response:
            response = peer.respond(HTTPStatus.FOUND, "")
            response.headers["Location"] = other
            return response

        async with serve(silent, "127.0.0.1", 0, process_request=redirect) as front:
            port = next(iter(front.sockets)).getsockname()[1]
            assert "cross-origin" in await Follower(f"ws://127.0.0.1:{port}").ends()
        for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
            monkeypatch.setenv(name, other.replace("ws:", "http:"))
        assert await Follower("ws://127.0.0.1:1").ends() == "connection refused"
    assert reached == []
