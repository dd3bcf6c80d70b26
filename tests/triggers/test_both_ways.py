"""One suite over every way to learn of a block: the same events give the same firings, each exactly once.

The ways are polling, a subscription that wakes a watch which otherwise never looks, and polling beside each
server that misbehaves. After each act the watch is let catch up, because what one look sees of the log is
one `log-grew`, however many entries there are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import Deployment, deploy
from fleet.personas.model import EVENTS
from fleet.triggers.chain.state import WatchState
from fleet.triggers.chain.subscription import HeadSubscription
from fleet.triggers.chain.watch import KEY, ChainWatch
from tests.doubles.triggers import FiringRecorder, MemoryFacts
from tests.triggers.conftest import running, until
from tests.triggers.servers import HOSTILE, Relay, relay, server

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

SOON_S, NEVER_S = 0.05, 1e9
"""Between two looks of a watch that polls, and of one that only a subscription wakes."""
WAYS = ("polling", "subscribed", *HOSTILE)


@dataclass
class Watched:
    """A watch over a deployed platform by one way; everything that is durable outlives a stop."""

    rpc: Rpc
    at: Deployment
    way: str
    ws: str
    link: Relay
    """What the way depends on: `cut` takes it away."""
    link_rpc: Rpc
    facts: MemoryFacts = field(default_factory=MemoryFacts)
    sink: FiringRecorder = field(default_factory=FiringRecorder)
    reports: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """From a start to a stop."""
        everything = dict.fromkeys(EVENTS, ("qa-a",))
        every_s = NEVER_S if self.way == "subscribed" else SOON_S
        watch = ChainWatch(
            self.rpc if self.way == "subscribed" else self.link_rpc,
            self.at.diamond,
            self.facts,
            self.sink,
            everything.__getitem__,
            every_s=every_s,
            gap_s=0.01,
        )
        heads = HeadSubscription(self.ws, watch.wake, self.reports.append)
        async with running(watch.run, *([heads.run] if self.ws else [])):
            await until(lambda: KEY in self.facts)
            yield

    async def caught_up(self) -> None:
        """Until the cursor is at a block that is made now, and everything before it was handed over."""
        await self.rpc.call("evm_mine")
        number = int(await self.rpc.call("eth_blockNumber"), 16)
        await until(lambda: self._stands_at(number), 30)

    def _stands_at(self, number: int) -> bool:
        seen = WatchState.loads(self.facts[KEY])
        return seen.cursor == number and not seen.outbox

    def named(self, word: str) -> str:
        """A name of its own for each way: they share a platform."""
        return f"{word}-{self.way.replace(' ', '-').lower()}"

    async def send(self, name: str, *args: object) -> int:
        receipt = await node.invoke(self.rpc, self.at.deployer, self.at.diamond, name, *args)
        return int(receipt["blockNumber"], 16)

    def fired(self) -> list[str]:
        """`event:block` of everything that fired so far."""
        assert self.sink.repeats == []
        return sorted(key.partition("@")[2].rpartition(":")[0] for key in self.sink.keys)


@pytest.fixture(scope="module")
async def chain(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Anvil, Rpc, Deployment]]:
    state = tmp_path_factory.mktemp("chain") / "chain.json"
    async with Anvil(state, history=64) as anvil, Rpc(anvil.url) as rpc:
        yield anvil, rpc, await deploy(rpc)


@asynccontextmanager
async def _watched(chain: tuple[Anvil, Rpc, Deployment], way: str) -> AsyncGenerator[Watched]:
    anvil, rpc, at = chain
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(relay(anvil.port))
        by_http = await stack.enter_async_context(Rpc(f"http://127.0.0.1:{link.port}"))
        urls = {"polling": "", "subscribed": f"ws://127.0.0.1:{link.port}"}
        url = urls[way] if way in urls else await stack.enter_async_context(server(HOSTILE[way]))
        yield Watched(rpc, at, way, url, link, by_http)


@pytest.fixture(params=WAYS)
async def watched(
    chain: tuple[Anvil, Rpc, Deployment], request: pytest.FixtureRequest
) -> AsyncIterator[Watched]:
    async with _watched(chain, request.param) as found:
        yield found


async def test_the_same_events_give_the_same_firings_once(watched: Watched) -> None:
    async with watched.watching():
        first = await watched.send("register", watched.named("one"))
        await watched.caught_up()
        second = await watched.send("submitFeedback", "hello")
        await watched.caught_up()
        third = await watched.send("clearFeedback")
        await watched.caught_up()
    assert watched.fired() == sorted(
        [
            f"registered:{first}",
            f"log-grew:{second}",
            f"log-changed:{second}",
            f"log-cleared:{third}",
            f"log-changed:{third}",
        ]
    )


async def test_a_restart_goes_on_from_the_cursor(watched: Watched) -> None:
    async with watched.watching():
        before = await watched.send("register", watched.named("before"))
        await watched.caught_up()
    stopped = await watched.send("register", watched.named("stopped"))
    async with watched.watching():
        await watched.caught_up()
        after = await watched.send("register", watched.named("after"))
        await watched.caught_up()
    assert watched.fired() == sorted(f"registered:{block}" for block in (before, stopped, after))


async def test_a_reorg_is_followed(watched: Watched) -> None:
    async with watched.watching():
        before = await watched.send("register", watched.named("kept"))
        await watched.caught_up()
        lost = await watched.send("register", watched.named("lost"))
        await watched.caught_up()
        await watched.rpc.call("anvil_reorg", [2, []])
        await watched.caught_up()
        fresh = await watched.send("register", watched.named("fresh"))
        await watched.caught_up()
    # the new chain gives the id of the lost registration to the fresh one: an id fires once
    assert set(watched.fired()) - {f"registered:{fresh}"} == {f"registered:{before}", f"registered:{lost}"}


@pytest.mark.parametrize("way", ["polling", "subscribed"])
async def test_a_cut_connection_loses_nothing(chain: tuple[Anvil, Rpc, Deployment], way: str) -> None:
    async with _watched(chain, way) as watched:
        async with watched.watching():
            await until(lambda: watched.link.made)
            first = await watched.send("register", f"first-cut-{way}")
            await watched.caught_up()
            made = watched.link.made
            watched.link.cut()
            second = await watched.send("register", f"second-cut-{way}")
            await until(lambda: way == "polling" or watched.reports[-1] != "")
            watched.link.open = True
            await until(lambda: watched.link.made > made)
            await until(lambda: len(watched.sink.keys) == 2, 60)
            third = await watched.send("register", f"third-cut-{way}")
            await watched.caught_up()
        assert watched.fired() == sorted(f"registered:{block}" for block in (first, second, third))
        if way == "subscribed":
            assert [bool(report) for report in watched.reports] == [False, True, False]


async def test_polling_goes_on_while_there_is_no_subscription(chain: tuple[Anvil, Rpc, Deployment]) -> None:
    async with _watched(chain, "polling") as watched:
        watched.ws = "ws://127.0.0.1:1"
        async with watched.watching():
            block = await watched.send("register", "unsubscribed")
            await watched.caught_up()
    assert watched.fired() == [f"registered:{block}"]
    assert watched.reports == ["connection refused"]


async def test_a_subscription_wakes_a_watch_that_would_not_look(
    chain: tuple[Anvil, Rpc, Deployment],
) -> None:
    """The interval is thirty years: what fires, fires by the wake."""
    async with _watched(chain, "subscribed") as watched, watched.watching():
        await until(lambda: watched.reports == [""])
        block = await watched.send("register", "woken")
        await until(lambda: watched.sink.fired)
        assert watched.fired() == [f"registered:{block}"]
