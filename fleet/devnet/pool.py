"""Transactions that anvil 1.7.1 strands in its pool, found and freed.

It reads the sender's nonce and then files the transaction behind the one before it. When that one is mined
in between, nothing ever calls the transaction up, a new block does not help, and the same bytes sent again
are "already imported". Rare, and only under load; but a post that never arrives ends a demo.
"""

from __future__ import annotations

import anyio

from fleet.chain.node.hexes import as_int
from fleet.chain.node.rpc import Rpc
from fleet.errors import ChainError

LOOK_S = 0.5


async def watch(url: str) -> None:
    """Look for stranded transactions until cancelled. An anvil that is busy or gone is asked again later."""
    suspects: frozenset[str] = frozenset()
    async with Rpc(url) as rpc:
        while True:
            await anyio.sleep(LOOK_S)
            try:
                suspects = await unstrand(rpc, suspects)
            except ChainError:
                suspects = frozenset()


async def unstrand(rpc: Rpc, suspects: frozenset[str]) -> frozenset[str]:
    """Free what is among the suspects of the look before; the hashes to suspect after this one.

    Stranded is what waits although its nonce is the next one of its sender, twice in a row: once may be
    a block that is just being made.
    """
    if not as_int((await rpc.call("txpool_status"))["queued"]):
        return frozenset()
    found = set()
    for sender, waiting in (await rpc.call("txpool_content"))["queued"].items():
        hashes = [waiting[nonce]["hash"] for nonce in sorted(waiting, key=int)]
        if min(map(int, waiting)) != as_int(await rpc.call("eth_getTransactionCount", [sender, "latest"])):
            continue
        if hashes[0] in suspects:
            raws = await rpc.batch([("eth_getRawTransactionByHash", [one]) for one in hashes])
            await rpc.call("anvil_removePoolTransactions", [sender])
            await rpc.batch([("eth_sendRawTransaction", [raw]) for raw in raws])
        else:
            found.add(hashes[0])
    return frozenset(found)
