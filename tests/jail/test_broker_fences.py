"""Every way out of the broker against every fence, asked when the request comes and when it acts."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fleet.broker.broker import Broker
from fleet.broker.egress_policy import parse_target
from fleet.broker.services import Services
from fleet.errors import Refused
from tests.jail.test_broker_rpc import READ, node, post, read_answer
from tests.sandbox.doubles import DIAMOND, Got, Server, Signer, http_answer, listener, policy_for

pytestmark = pytest.mark.anyio

BODIES: dict[str, bytes] = {
    "/rpc": json.dumps(READ).encode(),
    "/tx": json.dumps({"key": "caller", "to": DIAMOND, "data": "0x89934d3a", "gas": 100_000}).encode(),
    "/auth": json.dumps({"key": "caller"}).encode(),
    "/pay": b"",  # for what the site sells, below
}
SOLD = {"scheme": "exact", "network": "eip155:1", "asset": DIAMOND, "payTo": DIAMOND, "amount": "7"}
QUOTE = base64.b64encode(json.dumps({"x402Version": 2, "accepts": [SOLD]}).encode()).decode()
PAGES = ("look at a page", "change a page", "call an agent")
ACTS = ("change a page", "call an agent", "/tx", "/auth", "/pay")
FENCES: dict[str, Callable[[Rig], None]] = {
    "stop": lambda it: it.turn("stop"),
    "dial": lambda it: it.turn("observe"),
    "budget": lambda it: it.end("budget"),
    "deadline": lambda it: it.end("deadline"),
}
TABLE = [
    (way, fence, "" if fence == "dial" and way not in ACTS else fence)
    for way in (*PAGES, *BODIES)
    for fence in FENCES
]


@dataclass
class Rig:
    """A broker before a site, a node and a signer; `left` is what reached any of them."""

    site: Server
    node: Server
    signer: Signer
    port: int = 0
    rung: str = "exercise"

    def turn(self, word: str) -> None:
        self.rung = word

    def end(self, rule: str) -> None:
        self.signer.ended = (rule, f"the {rule} is spent")

    @property
    def left(self) -> int:
        pages = len(self.site.got) + len(self.node.got)
        return pages + len(self.signer.submitted) + len(self.signer.tokens) + len(self.signer.payments)

    def bytes_of(self, way: str) -> bytes:
        if way == "/pay":
            return post(way, json.dumps({"url": f"{self.site.url}/sold", "option": 0}).encode())
        if way in BODIES:
            return post(way, BODIES[way])
        path, verb = ("/proxy/v1", "POST") if way == "call an agent" else ("/cart/1", "GET")
        verb = "PUT" if way == "change a page" else verb
        return b"%s %s%s HTTP/1.1\r\nhost: %s\r\ncontent-length: 2\r\n\r\n{}" % (
            verb.encode(),
            self.site.url.encode(),
            path.encode(),
            self.site.url.partition("//")[2].encode(),
        )

    async def quoted(self) -> None:
        """What is sold has its price in this call."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        host = self.site.url.partition("//")[2]
        writer.write(f"GET {self.site.url}/sold HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        assert (await read_answer(reader))[0] == 402
        writer.close()
        self.site.got.clear()

    async def ask(self, way: str, between: Callable[[], None] = lambda: None) -> tuple[int, str]:
        """Status and rule; `between` happens once all but the last byte is on its way."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = self.bytes_of(way)
        writer.write(data[:-1])
        await writer.drain()
        await asyncio.sleep(0.05)
        between()
        writer.write(data[-1:])
        status, body = await read_answer(reader)
        writer.close()
        found: Any = json.loads(body)
        return status, found.get("rule", "") if isinstance(found, dict) else ""


@contextlib.asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    def page(got: Got) -> bytes:
        sold = got.path == "/sold"
        return http_answer(402, b"{}", f"payment-required: {QUOTE}") if sold else http_answer(200, b"{}")

    async with Server(page) as site, Server(node) as chain:
        it = Rig(site, chain, Signer())
        policy = replace(
            policy_for(f"{site.url}/proxy", rpc=chain.url),
            act_paths=(parse_target(f"{site.url}/cart"),),
            paid=(parse_target(f"{site.url}/sold"),),
            rung=lambda: it.rung,
        )
        with listener() as sock:
            async with Broker(policy, it.signer).egress(sock):
                it.port = sock.getsockname()[1]
                await it.quoted()
                yield it


def test_the_table_has_every_service() -> None:
    assert set(Services(policy_for(), None).by_path) == set(BODIES)


@pytest.mark.parametrize("way", [*PAGES, *BODIES])
async def test_each_way_out_is_open_where_no_fence_is_closed(way: str) -> None:
    async with rig() as it:
        assert await it.ask(way) == (200, "")
        assert it.left == 1


@pytest.mark.parametrize(("way", "fence", "rule"), TABLE)
async def test_a_closed_fence_closes_every_way_out(way: str, fence: str, rule: str) -> None:
    async with rig() as it:
        FENCES[fence](it)
        assert await it.ask(way) == (403 if rule else 200, rule)
        assert it.left == (0 if rule else 1)


@pytest.mark.parametrize(("way", "fence", "rule"), TABLE)
async def test_a_fence_that_closes_while_the_request_comes_in_is_seen(
    way: str, fence: str, rule: str
) -> None:
    async with rig() as it:
        assert await it.ask(way, lambda: FENCES[fence](it)) == (403 if rule else 200, rule)
        assert it.left == (0 if rule else 1)


@pytest.mark.parametrize("fence", FENCES)
async def test_a_fence_that_closes_while_a_host_is_dialled_is_seen(
    fence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = asyncio.open_connection
    async with rig() as it:

        async def slow(host: Any = None, port: Any = None, **how: Any) -> Any:
            if f":{port}" in it.site.url:
                FENCES[fence](it)
            return await opened(host, port, **how)

        monkeypatch.setattr("fleet.broker.forward.asyncio.open_connection", slow)
        reader, writer = await opened("127.0.0.1", it.port)
        writer.write(it.bytes_of("change a page"))
        status, body = await read_answer(reader)
        writer.close()
        assert (status, json.loads(body)["rule"], it.site.got) == (403, fence, [])


async def test_more_call_tokens_than_the_charged_calls_need_are_not_signed() -> None:
    async with rig() as it:
        found = [await it.ask("/auth") for _ in range(6)]
    assert found == [(200, "")] * 4 + [(403, "budget")] * 2
    assert len(it.signer.tokens) == 4


async def test_an_act_that_fails_after_its_jail_has_ended_is_no_fault_of_the_loop() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    services = Services(policy_for(), None)

    async def act() -> dict[str, Any]:
        await asyncio.sleep(0.05)
        raise Refused("STOP is set", rule="stop")

    asking = asyncio.create_task(services._act(act()))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    del asking
    await services.aclose()
    gc.collect()
    await asyncio.sleep(0)
    assert faults == []
