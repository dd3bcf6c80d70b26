"""Fills the feedback log for benches."""

from __future__ import annotations

from collections.abc import Callable

from fleet.chain.node import codec
from fleet.chain.node.rpc import Rpc
from fleet.devnet import artifact, node
from fleet.devnet.anvil import BLOCK_GAS_LIMIT
from fleet.errors import FleetError

SEEDER = "0xa0ee7a142d267c1f36714e4a8f75612f20a79720"
"""anvil's unlocked development account 9."""

MAX_CALLDATA = 400_000
"""Bytes of one transaction; anvil takes at most 2 MB of request, in which each byte is two digits."""


def entry(index: int, size: int) -> str:
    """Log entry `index` of exactly `size` bytes, in the form the fleet writes."""
    head = f"qa/v1 source=qa-seed sev=low surface=compiler run=seed fp={index:012x} rate=3/3\nentry {index} "
    return head[:size].ljust(size, ".")


async def seed_feedback(
    rpc: Rpc, diamond: str, n: int, size: int, *, text: Callable[[int, int], str] = entry
) -> str:
    """Appends `n` entries `text(index, size)` and returns their sender, a contract made for it.

    Hundreds of entries in each transaction: anvil hashes its whole state once per block, so one entry per
    block falls from 363 to 28 a second within 1,200 blocks (performance.md 2).
    """
    contract = artifact.load("FeedbackSeeder")
    seeder = await node.create(rpc, SEEDER, contract.code)
    post = contract.selectors()["post(address,string[])"]
    page = max(1, min(MAX_CALLDATA // (size + 96), BLOCK_GAS_LIMIT // _gas(size) - 1))
    before = await rpc.view(diamond, "feedbackCount")
    for start in range(0, n, page):
        texts = [text(before + place, size) for place in range(start, min(start + page, n))]
        call = post + codec.encode(["address", "string[]"], [diamond, texts])
        await node.transact(rpc, SEEDER, seeder, call, gas=BLOCK_GAS_LIMIT)
    if (added := await rpc.view(diamond, "feedbackCount") - before) != n:
        raise FleetError(f"seeding added {added} entries instead of {n}")
    return seeder


def _gas(size: int) -> int:
    """An upper bound for one entry: a cold slot for each word, the event, and what calldata costs."""
    return 80_000 + 25_000 * (size // 32 + 1)
