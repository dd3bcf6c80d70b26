"""What anvil strands is freed; what waits for good reason is left alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from fleet.chain.keys import Secret, address_of, fresh
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.tx import SignedTx, UnsignedTx, sign
from fleet.devnet import pool
from fleet.devnet.anvil import CHAIN_ID, Anvil
from fleet.devnet.node import fund
from fleet.errors import RpcError

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


@pytest.fixture(scope="module")
async def rpc(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rpc]:
    async with Anvil(tmp_path_factory.mktemp("chain") / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        yield rpc


@pytest.fixture
async def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rpc]:
    """A chain whose pool nobody watches."""
    monkeypatch.setattr(pool, "LOOK_S", 1e6)
    async with Anvil(tmp_path / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        yield rpc


async def send(rpc: Rpc, key: Secret, *nonces: int) -> list[SignedTx]:
    made = [
        sign(
            UnsignedTx(
                chain_id=CHAIN_ID,
                nonce=nonce,
                tip=0,
                max_fee=10**10,
                gas=30_000,
                to="0x" + "11" * 20,
                value=1,
                data=b"",
            ),
            key,
        )
        for nonce in nonces
    ]
    await fund(rpc, address_of(key), 10**20)
    for signed in made:
        await rpc.call("eth_sendRawTransaction", ["0x" + signed.raw.hex()])
    return made


async def strand(rpc: Rpc, key: Secret, *nonces: int) -> list[SignedTx]:
    """Transactions filed behind one that the chain has, as far as the nonce tells, mined already."""
    made = await send(rpc, key, *nonces)
    await rpc.call("anvil_setNonce", [address_of(key), hex(nonces[0])])
    return made


async def mined(rpc: Rpc, signed: SignedTx) -> bool:
    return await rpc.call("eth_getTransactionReceipt", [signed.hash]) is not None


async def arrives(rpc: Rpc, signed: SignedTx) -> None:
    for _ in range(400):
        if await mined(rpc, signed):
            return
        await anyio.sleep(0.05)
    pytest.fail(f"{signed.hash} is in no block")


async def test_anvil_never_frees_it_by_itself(still: Rpc) -> None:
    """The flaw that `pool` is there for: when this fails, anvil has mended it."""
    (signed,) = await strand(still, fresh(), 1)
    await still.call("evm_mine")
    with pytest.raises(RpcError, match="already imported"):
        await still.call("eth_sendRawTransaction", ["0x" + signed.raw.hex()])
    await anyio.sleep(1)
    assert not await mined(still, signed)


async def test_stranded_transactions_are_mined_all_the_same(rpc: Rpc) -> None:
    made = await strand(rpc, fresh(), 3, 4, 5)
    for signed in made:
        await arrives(rpc, signed)


async def test_only_what_is_next_and_was_so_before_is_freed(still: Rpc) -> None:
    lost, gap = await strand(still, fresh(), 1), await send(still, fresh(), 1)
    suspects = await pool.unstrand(still, frozenset())
    assert suspects == {lost[0].hash}
    assert not await mined(still, lost[0])
    assert await pool.unstrand(still, suspects) == frozenset()
    await arrives(still, lost[0])
    assert not await mined(still, gap[0])
    assert await still.call("txpool_status") == {"pending": "0x0", "queued": "0x1"}
