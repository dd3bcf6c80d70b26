"""One conformance suite for both chain ports of the platform: in memory, and a diamond on anvil."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fleet.chain.keys import Secret
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.devnet.devnet import METER_KEY
from fleet.devnet.platform.chain import APP_WASM, PERSONA, ChainPort, DiamondDouble
from fleet.devnet.platform.rpc_chain import RpcChain
from fleet.devnet.platform.site import CREDIT
from fleet.errors import TxFailed, Unreachable
from tests.devnet.conftest import ALICE, BOB, World

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]
VALUE = bytes(range(256)) * 3
DAILY = 10 * CREDIT


@pytest.fixture(params=["memory", "anvil"])
async def port(request: pytest.FixtureRequest, world: World) -> AsyncIterator[ChainPort]:
    """Alice owns `first` with a value under APP_WASM; Bob has the daily credit."""
    if request.param == "memory":
        yield DiamondDouble({BOB: DAILY}, {"first": ALICE}, {(1, APP_WASM): VALUE})
        return
    ident = await world.mint(ALICE, "first")
    assert ident == 1
    await world.send(ALICE, "setMetadata", ident, APP_WASM, VALUE)
    await world.send(BOB, "claimDaily")
    async with Rpc(world.rpc.url) as rpc:
        yield RpcChain(rpc, world.at.diamond, Secret(bytes.fromhex(METER_KEY)))


async def test_names(port: ChainPort) -> None:
    assert [await port.owner_of_name(name) for name in ("first", "second")] == [ALICE, ZERO_ADDRESS]
    assert [await port.id_of_name(name) for name in ("first", "second")] == [1, 0]


async def test_metadata(port: ChainPort) -> None:
    assert await port.metadata(1, APP_WASM) == VALUE
    assert await port.metadata(1, PERSONA) == await port.metadata(7, APP_WASM) == b""


async def test_a_debit_is_exact_and_visible_at_once(port: ChainPort) -> None:
    assert (await port.credit_of(BOB), await port.credit_of(ALICE)) == (DAILY, 0)
    await port.meter(BOB, 3)
    assert await port.credit_of(BOB.upper().replace("X", "x")) == DAILY - 3


async def test_a_debit_beyond_the_credit_fails_and_takes_nothing(port: ChainPort) -> None:
    with pytest.raises(TxFailed):
        await port.meter(BOB, DAILY + 1)
    assert await port.credit_of(BOB) == DAILY
    await port.meter(BOB, DAILY)
    assert await port.credit_of(BOB) == 0


async def test_debits_side_by_side_all_happen(port: ChainPort) -> None:
    await asyncio.gather(*(port.meter(BOB, 5) for _ in range(8)))
    assert await port.credit_of(BOB) == DAILY - 40


async def test_only_the_meter_may_debit(world: World) -> None:
    await world.send(BOB, "claimDaily")
    async with Rpc(world.rpc.url) as rpc:
        for key in (None, Secret(bytes.fromhex("33" * 32))):
            with pytest.raises(TxFailed):
                await RpcChain(rpc, world.at.diamond, key).meter(BOB, 1)
        assert await RpcChain(rpc, world.at.diamond, None).credit_of(BOB) == DAILY


async def test_a_node_that_is_not_there_is_unreachable() -> None:
    async with Rpc("http://127.0.0.1:9", timeout_s=2) as rpc:
        chain = RpcChain(rpc, ALICE, None)
        with pytest.raises(Unreachable):
            await chain.id_of_name("first")
