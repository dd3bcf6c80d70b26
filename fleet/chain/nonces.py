"""The nonces of each sending address: who may take the next one."""

from __future__ import annotations

import anyio

from fleet.chain.rpc import Rpc

CATCH_UP_S = 2.0
"""How long a node that lags behind our own broadcasts may take before its count is believed."""
KEPT = 256
"""Senders that are remembered; every run has throwaway keys of its own, and the process stays for months."""


class SenderNonces:
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
                pending = await self._rpc.nonce(self._address, "pending")
        return pending

    def sent(self, nonce: int) -> None:
        """Note that a transaction with this nonce was accepted."""
        self._next = nonce + 1


class NonceBook:
    """The nonces of the latest `KEPT` senders. For a forgotten one the node is asked again."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._senders: dict[str, SenderNonces] = {}

    def __len__(self) -> int:
        return len(self._senders)

    def of(self, sender: str) -> SenderNonces:
        """Its nonces; take the lock before anything else is awaited: what is in use is never forgotten."""
        mine = self._senders.pop(sender, None) or SenderNonces(self._rpc, sender)
        self._senders[sender] = mine
        if len(self._senders) > KEPT:
            others = (one for one, old in self._senders.items() if old is not mine and not old.lock.locked())
            if idle := next(others, ""):
                del self._senders[idle]
        return mine
