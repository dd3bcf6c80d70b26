"""What became of journalled bytes: found out by looking, and by the nonce, which only one of them can have.

Whoever wrote an intent may live, and still send it: a daemon that was stopped and taken for dead. So bytes
count as failed only once that is without danger: they were mined, or their nonce is used for good, or
what is signed in their place has the same nonce.
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
    """Looks at the chain on behalf of the signer, and sends again only what is journalled."""

    def __init__(
        self, rpc: Rpc, judge: Judge, receipts: Receipts, sender: Broadcast, journal: TxJournal
    ) -> None:
        self._rpc, self._judge, self._receipts = rpc, judge, receipts
        self._sender, self._journal = sender, journal

    async def settle_raw(self, raw: bytes, *, rebroadcast: bool) -> Settlement:
        """Find out what became of journalled bytes; send the same bytes again when they never arrived."""
        unsigned, sender = parse(raw)
        tx = tx_hash(raw)
        found = (await self._receipts.lookup([tx]))[0]
        if found is None and not await self._receipts.known(tx):
            used = await self._receipts.used(sender) > unsigned.nonce
            found = (await self._receipts.lookup([tx]))[0] if used else None  # it may have come just now
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
        """None when the node has these bytes now."""
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
        """Whether no block can hold these bytes: their nonce is used, or their sender cannot pay."""
        unsigned, sender = parse(raw)
        if await self._receipts.used(sender, final=False) > unsigned.nonce:
            return True
        return await self._rpc.balance(sender) < unsigned.gas * unsigned.max_fee + unsigned.value

    async def held(self, requests: Sequence[TxRequest], sender: str) -> int | None:
        """The nonce of an earlier intent of this run to write the same entry, while no block has used it.

        Its bytes may still be on their way; what is signed in their place excludes them.
        """
        request = requests[0]
        if len(requests) != 1 or request.role is not Role.IDENTITY or not request.run:
            return None
        earlier = [parse(raw)[0] for raw in await self._journal.unmined(request.run)]
        nonces = [one.nonce for one in earlier if one.data == request.data]
        used = await self._receipts.used(sender) if nonces else 0
        return max((nonce for nonce in nonces if nonce >= used), default=None)
