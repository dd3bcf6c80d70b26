"""The poller on a real chain: a cut, names, the log, its clearing, and real reorgs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import Deployment, deploy
from fleet.personas.model import EVENTS
from fleet.triggers.chain.watch import ChainWatch
from tests.doubles.triggers import FiringRecorder, MemoryFacts

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

ALICE = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"
SPONSOR = "0x" + "5a" * 20
ADD, REMOVE = 0, 2


@dataclass
class World:
    """A deployed platform and a watch on it, past its first look."""

    rpc: Rpc
    at: Deployment
    facts: MemoryFacts = field(default_factory=MemoryFacts)
    sink: FiringRecorder = field(default_factory=FiringRecorder)

    def __post_init__(self) -> None:
        self.watch = self.again()

    def again(self) -> ChainWatch:
        """A restart."""
        everything = dict.fromkeys(EVENTS, ("qa-a",))
        self.watch = ChainWatch(
            self.rpc,
            self.at.diamond,
            self.facts,
            self.sink,
            everything.__getitem__,
            sponsor=SPONSOR,
            low_wei=10**17,
        )
        return self.watch

    async def send(self, name: str, *args: Any, sender: str = "") -> int:
        receipt = await node.invoke(self.rpc, sender or self.at.deployer, self.at.diamond, name, *args)
        return int(receipt["blockNumber"], 16)

    async def fires(self) -> list[str]:
        """`event:block` of what one look fires, sorted."""
        before = len(self.sink.fired)
        assert await self.watch.turn() == 5
        keys = self.sink.keys[before:]
        return sorted(key.partition("@")[2].rpartition(":")[0] for key in keys)


@pytest.fixture(scope="module")
async def chain(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Rpc, Deployment]]:
    state = tmp_path_factory.mktemp("chain") / "chain.json"
    async with Anvil(state, history=64) as anvil, Rpc(anvil.url) as rpc:
        await node.fund(rpc, SPONSOR, 10**18)
        yield rpc, await deploy(rpc)


@pytest.fixture
async def world(chain: tuple[Rpc, Deployment]) -> World:
    found = World(*chain)
    assert await found.fires() == []
    return found


async def test_names_and_entries_fire_once_each(world: World) -> None:
    first = await world.send("register", "one", sender=ALICE)
    second = await world.send("register", "two")
    posted = await world.send("submitFeedback", "hello")
    expected = [f"log-changed:{posted}", f"log-grew:{posted}", f"registered:{first}", f"registered:{second}"]
    assert await world.fires() == expected
    assert await world.fires() == []
    world.again()
    assert await world.fires() == []


async def test_a_cleared_log_is_told_from_a_growing_one(world: World) -> None:
    await world.send("submitFeedback", "one")
    await world.fires()
    block = await world.send("clearFeedback")
    assert await world.fires() == [f"log-changed:{block}", f"log-cleared:{block}"]
    for text in ("one", "two"):
        await world.send("submitFeedback", text)
    await world.fires()
    await world.send("clearFeedback")
    for text in ("three", "four"):
        block = await world.send("submitFeedback", text)
    assert await world.fires() == [f"log-changed:{block}", f"log-cleared:{block}", f"log-grew:{block}"]


async def test_a_cut_fires_once_and_so_does_the_way_back(world: World) -> None:
    selector = FUNCTIONS["creditOf"].selector
    facet = await world.rpc.view(world.at.diamond, "facetAddress", selector)
    for cut in ((ZERO_ADDRESS, REMOVE, [selector]), (facet, ADD, [selector])):
        block = await world.send("diamondCut", [cut], ZERO_ADDRESS, b"")
        assert await world.fires() == [f"facets-changed:{block}"]
        await world.rpc.call("evm_mine")
        assert await world.fires() == []


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_a_reorg_is_followed(world: World, depth: int) -> None:
    for number in range(depth):
        await world.send("register", f"lost-{depth}-{number}")
        await world.fires()
    await world.send("submitFeedback", "lost")
    await world.fires()
    height = int(await world.rpc.call("eth_blockNumber"), 16)
    await world.rpc.call("anvil_reorg", [depth + 1, []])
    assert await world.fires() == [f"log-changed:{height}"]
    assert world.watch.trouble == ""
    again = await world.send("register", f"lost-{depth}-0")  # its id fired: that it came back is no news
    fresh = await world.send("submitFeedback", "new")
    assert again > height
    assert await world.fires() == [f"log-changed:{fresh}", f"log-grew:{fresh}"]
    new = await world.send("register", f"later-{depth}")
    assert set(await world.fires()) <= {f"registered:{new}"}
    assert world.sink.repeats == []


async def test_a_poor_sponsor_is_told_once(world: World) -> None:
    for wei, fires in ((1, 1), (2, 0), (10**18, 0), (3, 1)):
        await node.fund(world.rpc, SPONSOR, wei)
        await world.rpc.call("evm_mine")
        assert len(await world.fires()) == fires
    await node.fund(world.rpc, SPONSOR, 10**18)
