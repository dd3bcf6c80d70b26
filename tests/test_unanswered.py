"""How something does not answer has one word, whether the chain client or the broker's code met it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import pytest

from fleet.broker.control import own_listener, reach
from fleet.chain.node.rpc import Rpc
from fleet.errors import Unreachable
from fleet.unanswered import BAD_GATEWAY, NO_NAME, NO_ROUTE, REFUSED, RESET, TIMED_OUT, unanswered

pytestmark = pytest.mark.anyio

SAYS = {
    "hang": None,
    "cut": b"",
    "busy": b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n",
    "nonsense": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "page": b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<a/>",
}


@asynccontextmanager
async def server(kind: str) -> AsyncIterator[str]:
    """A URL where a server hangs, cuts, or says one thing; nobody listens at that of `gone`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError), closing(writer):
            await reader.read(1 << 16)
            said = SAYS[kind]
            if said is None:
                await reader.read()
            else:
                writer.write(said)

    if kind == "gone":
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        return
    made = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}"
    finally:
        made.close()


@pytest.mark.parametrize(
    ("kind", "node", "control"),
    [
        ("gone", REFUSED, REFUSED),
        ("hang", TIMED_OUT, TIMED_OUT),
        ("cut", RESET, RESET),
        ("busy", BAD_GATEWAY, ""),
        ("nonsense", "", ""),
        ("page", "", ""),
    ],
)
async def test_one_word_for_one_way_not_to_answer(kind: str, node: str, control: str) -> None:
    async with server(kind) as url:
        async with Rpc(url, timeout_s=0.5) as rpc:
            with pytest.raises(Unreachable) as caught:
                await rpc.call("eth_chainId")
        assert caught.value.how == node
        said = await reach(f"{url}/", 0.5)
        assert said.endswith(control)
        assert bool(said) == bool(control)


async def test_a_listener_of_our_own_answers_while_it_is_there() -> None:
    async with own_listener() as url:
        assert await reach(url, 5) == ""
        assert await reach(url, 5) == ""
    assert (await reach(url, 5)).endswith(REFUSED)


def test_what_led_to_an_error_is_looked_for() -> None:
    refused = ConnectionRefusedError(111, "no")
    group = ExceptionGroup("all", [ValueError(), refused])
    wrapped = RuntimeError()
    wrapped.__cause__ = group
    assert unanswered(wrapped) == REFUSED
    assert unanswered(socket.gaierror(-2, "unknown")) == NO_NAME
    assert unanswered(OSError(101, "unreachable")) == NO_ROUTE
    assert unanswered(OSError(24, "too many open files")) == ""
