"""Fills the feedback log for benches."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from fleet.chain.abi import FUNCTIONS
from fleet.chain.rpc import Rpc
from fleet.devnet import node
from fleet.errors import FleetError

SEEDER = "0xa0ee7a142d267c1f36714e4a8f75612f20a79720"
"""anvil's unlocked development account 9."""

BATCH = 50


def entry(index: int, size: int) -> str:
    """Log entry `index` of exactly `size` bytes, in the form the fleet writes."""
    head = f"qa/v1 source=qa-seed sev=low surface=compiler run=seed fp={index:012x} rate=3/3\nentry {index} "
    return head[:size].ljust(size, ".")


async def seed_feedback(
    rpc: Rpc, diamond: str, n: int, size: int, *, text: Callable[[int, int], str] = entry
) -> None:
    """Appends `n` entries of `size` bytes.

    Mines whole blocks: one block per entry makes anvil hash its whole state each time, which falls from 363
    to 28 entries a second within 1,200 blocks (performance.md 2).
    """
    submit = FUNCTIONS["submitFeedback"]
    nonce = int(await rpc.call("eth_getTransactionCount", [SEEDER, "latest"]), 16)
    gas = 200_000 + 1_000 * size
    before = await rpc.view(diamond, "feedbackCount")
    await rpc.call("evm_setAutomine", [False])
    try:
        for start in range(0, n, BATCH):
            batch = [
                (
                    "eth_sendTransaction",
                    [node.transaction(SEEDER, diamond, submit.encode(text(place, size)), gas=gas)
                     | {"nonce": hex(nonce + place)}],
                )
                for place in range(start, min(start + BATCH, n))
            ]  # fmt: skip
            node.checked(await rpc.batch(batch))
            await _mine(rpc, above=500)
        await _mine(rpc, above=0)
    finally:
        with anyio.CancelScope(shield=True):
            await rpc.call("evm_setAutomine", [True])
    if (added := await rpc.view(diamond, "feedbackCount") - before) != n:
        raise FleetError(f"seeding added {added} entries instead of {n}")


async def _mine(rpc: Rpc, *, above: int) -> None:
    while (pending := await _pending(rpc)) > above:
        await rpc.call("evm_mine")
        if await _pending(rpc) == pending:
            raise FleetError(f"{pending} transactions are stuck in the pool")


async def _pending(rpc: Rpc) -> int:
    return int((await rpc.call("txpool_status"))["pending"], 16)
