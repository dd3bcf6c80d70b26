"""One lane per sending address: who may take the next nonce."""

from __future__ import annotations

import anyio

from fleet.chain.hexes import as_int
from fleet.chain.rpc import Rpc

CATCH_UP_S = 2.0
"""How long a node that lags behind our own broadcasts may take before its count is believed."""
KEPT = 256
"""Senders whose lane is kept; every run has throwaway keys of its own, and the process stays for months."""


class Lane:
    """The nonces of one address. Hold `lock` from the choice of a nonce until the broadcast is over."""

    def __init__(self, rpc: Rpc, address: str) -> None:
        self.lock = anyio.Lock()
        self._rpc = rpc
        self._address = address
        self._next = 0

    async def first(self, pending: int) -> int:
        """The nonce to use, given the node's pending count.

        A replica may lag behind what we sent ourselves; after a short wait the chain is
        believed, because then our transaction was dropped or reorganised away.
        """
        with anyio.move_on_after(CATCH_UP_S):
            while pending < self._next:
                await anyio.sleep(0.05)
                pending = await self.pending()
        return pending

    async def pending(self) -> int:
        """The node's count for this address, its waiting transactions included."""
        return as_int(await self._rpc.call("eth_getTransactionCount", [self._address, "pending"]))

    def sent(self, nonce: int) -> None:
        """Note that a transaction with this nonce was accepted."""
        self._next = nonce + 1


class Lanes:
    """The lanes of every sender, the latest `KEPT` of them. A forgotten one asks the node again."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._lanes: dict[str, Lane] = {}

    def __len__(self) -> int:
        return len(self._lanes)

    def of(self, sender: str) -> Lane:
        """Its lane; take its lock before anything else is awaited: what is in use is never forgotten."""
        lane = self._lanes.pop(sender, None) or Lane(self._rpc, sender)
        self._lanes[sender] = lane
        if len(self._lanes) > KEPT:
            others = (one for one, old in self._lanes.items() if old is not lane and not old.lock.locked())
            if idle := next(others, ""):
                del self._lanes[idle]
        return lane
