"""Determines the state of journalled bytes from the chain, and from the nonce, which only one can use.

The daemon that wrote an intent may be alive and still send it: it may have been suspended and presumed dead.
So bytes count as failed only when that is safe: they were mined, or their nonce is used for good, or their
replacement is signed with the same nonce.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleet.chain.broadcast import Broadcast, is_taken
from fleet.chain.judge import Judge
from fleet.chain.ports import Role, Settlement, TxJournal, TxRequest
from fleet.chain.receipts import Receipts
from fleet.chain.rpc import Rpc
from fleet.chain.tx import UnsignedTx, parse, tx_hash

NOT_SENT = "never reached the chain, not sent again"
_USED = "another transaction used its nonce"
_NOT_FINAL = "another transaction has its nonce, in a block that does not count yet"


class Recovery:
    """Looks at the chain for the signer, and resends only journalled bytes."""

    def __init__(
        self, rpc: Rpc, judge: Judge, receipts: Receipts, sender: Broadcast, journal: TxJournal
    ) -> None:
        self._rpc, self._judge, self._receipts = rpc, judge, receipts
        self._sender, self._journal = sender, journal

    async def settle_raw(self, raw: bytes, *, rebroadcast: bool) -> Settlement:
        """Determine the state of journalled bytes; resend them if they never arrived."""
        unsigned, sender = parse(raw)
        tx = tx_hash(raw)
        found = (await self._receipts.lookup([tx]))[0]
        if found is None and not await self._receipts.known(tx):
            used = await self._receipts.used(sender) > unsigned.nonce
            found = (await self._receipts.lookup([tx]))[0] if used else None  # it may have been mined since
            if used and found is None:
                return Settlement(state="failed", tx=tx, reason=_USED)
            if not used and (away := await self._sent_again(raw, unsigned, sender, rebroadcast)):
                return away
        found = found or (await self._receipts.wait([tx]))[0]
        if found is None:
            return Settlement(state="pending", tx=tx, reason="the node has it, but no block does")
        return Settlement(state="mined", tx=tx, receipt=await self._receipts.explain(found, unsigned, sender))

    async def _sent_again(
        self, raw: bytes, unsigned: UnsignedTx, sender: str, rebroadcast: bool
    ) -> Settlement | None:
        """Resend the bytes; None if the node has them now."""
        tx = tx_hash(raw)
        if await self._receipts.used(sender, final=False) > unsigned.nonce:
            return Settlement(state="pending", tx=tx, reason=_NOT_FINAL)
        if not rebroadcast or not self._judge.may_resend(unsigned):
            return Settlement(state="failed", tx=tx, reason=NOT_SENT)
        answer = (await self._sender.send([raw]))[0]
        if await self._sender.accepted(answer, tx):
            return None
        return Settlement(state="pending" if is_taken(answer) else "failed", tx=tx, reason=str(answer))

    async def is_dead(self, raw: bytes) -> bool:
        """Whether these bytes can never be mined: their nonce is used, or their sender cannot pay."""
        unsigned, sender = parse(raw)
        if await self._receipts.used(sender, final=False) > unsigned.nonce:
            return True
        return await self._rpc.balance(sender) < unsigned.gas * unsigned.max_fee + unsigned.value

    async def held(self, requests: Sequence[TxRequest], sender: str) -> int | None:
        """The unused nonce of this run's earlier intent to write the same entry.

        The earlier bytes may still be sent; a replacement with the same nonce excludes them.
        """
        request = requests[0]
        if len(requests) != 1 or request.role is not Role.IDENTITY or not request.run:
            return None
        earlier = [parse(raw)[0] for raw in await self._journal.unmined(request.run)]
        nonces = [one.nonce for one in earlier if one.data == request.data]
        used = await self._receipts.used(sender) if nonces else 0
        return max((nonce for nonce in nonces if nonce >= used), default=None)
