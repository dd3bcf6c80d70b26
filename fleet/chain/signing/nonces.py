"""The next nonce of each sending address."""

from __future__ import annotations

import anyio

from fleet.chain.node.rpc import Rpc

CATCH_UP_S = 2.0
"""Seconds to wait for a node that lags behind our own broadcasts, before its count is believed."""
KEPT = 256
"""Senders to remember: bounded, as every run has its own throwaway keys and the process runs for months."""


class SenderNonces:
    """The nonces of one address. Hold `lock` from the choice of a nonce until the broadcast is over."""

    def __init__(self, rpc: Rpc, address: str) -> None:
        self.lock = anyio.Lock()
        self._rpc = rpc
        self._address = address
        self._next = 0

    async def first(self, pending: int) -> int:
        """The nonce to use, given the node's pending count.

        A replica may lag behind our own broadcasts. After a short wait the node's count is used, because our
        transaction was then dropped or reorganised away.
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
    """The nonces of the latest `KEPT` senders. A forgotten sender starts from the node's count."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._senders: dict[str, SenderNonces] = {}

    def __len__(self) -> int:
        return len(self._senders)

    def of(self, sender: str) -> SenderNonces:
        """A sender's nonces. Lock before awaiting anything else: a locked entry is never forgotten."""
        mine = self._senders.pop(sender, None) or SenderNonces(self._rpc, sender)
        self._senders[sender] = mine
        if len(self._senders) > KEPT:
            others = (one for one, old in self._senders.items() if old is not mine and not old.lock.locked())
            if idle := next(others, ""):
                del self._senders[idle]
        return mine
