"""Determines the state of journalled bytes from the chain, and from the nonce, which only one can use.

The daemon that wrote an intent may be alive and still send it: it may have been suspended and presumed dead.
So bytes count as failed only when that is safe: they were mined, or their nonce is used for good, or their
replacement is signed with the same nonce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from fleet.chain.node.reputation import entry_text
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Receipt, Role, Settlement, TxJournal, TxRequest
from fleet.chain.signing import delegate
from fleet.chain.signing.broadcast import Broadcast, Receipts, is_taken
from fleet.chain.signing.judge import Judge
from fleet.chain.signing.tx import UnsignedTx, parse, tx_hash

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

    async def settle_all(self, raws: Sequence[bytes], *, rebroadcast: bool = True) -> list[Settlement]:
        """Determine the state of journalled bytes of one key, in order of nonce; resend what never arrived.

        All that is missing goes out in one batch, or nothing: a later nonce is not mined without the earlier.
        """
        parsed = [parse(raw) for raw in raws]
        hashes = [tx_hash(raw) for raw in raws]
        found = await self._found(hashes)
        ends: dict[str, Settlement] = {}
        if lost := [tx for tx in hashes if tx not in found and not await self._receipts.known(tx)]:
            by_hash = dict(zip(hashes, zip(raws, (one for one, _ in parsed), strict=True), strict=True))
            sender = parsed[0][1]
            used = await self._receipts.used(sender)
            dead = [tx for tx in lost if by_hash[tx][1].nonce < used]
            late = await self._found(dead)  # it may have been mined since
            found |= late
            ends = {tx: Settlement(state="failed", tx=tx, reason=_USED) for tx in dead if tx not in late}
            open_ = {tx: by_hash[tx] for tx in lost if tx not in dead}
            ends |= await self._sent_again(open_, sender, rebroadcast)
        waiting = [tx for tx in hashes if tx not in ends and tx not in found]
        mined = zip(waiting, await self._receipts.wait(waiting), strict=True) if waiting else ()
        found |= {tx: receipt for tx, receipt in mined if receipt}
        for tx, (unsigned, sender) in zip(hashes, parsed, strict=True):
            if tx not in ends:
                ends[tx] = await self._settled(tx, found.get(tx), unsigned, sender)
        return [ends[tx] for tx in hashes]

    async def _found(self, hashes: Sequence[str]) -> dict[str, Receipt]:
        """Receipts that count, by hash."""
        looked = await self._receipts.lookup(hashes) if hashes else ()
        return {one.tx: one for one in looked if one}

    async def _settled(self, tx: str, found: Receipt | None, unsigned: UnsignedTx, sender: str) -> Settlement:
        if found is None:
            return Settlement(state="pending", tx=tx, reason="the node has it, but no block does")
        return Settlement(state="mined", tx=tx, receipt=await self._receipts.explain(found, unsigned, sender))

    async def _sent_again(
        self, lost: Mapping[str, tuple[bytes, UnsignedTx]], sender: str, rebroadcast: bool
    ) -> dict[str, Settlement]:
        """Resend the bytes; the state of those that the node does not have now."""
        used = await self._receipts.used(sender, final=False) if lost else 0
        taken = [tx for tx, (_, unsigned) in lost.items() if unsigned.nonce < used]
        ends = {tx: Settlement(state="pending", tx=tx, reason=_NOT_FINAL) for tx in taken}
        left = {tx: one for tx, one in lost.items() if tx not in taken}
        if not (rebroadcast and all(self._judge.may_resend(unsigned) for _, unsigned in left.values())):
            return ends | {tx: Settlement(state="failed", tx=tx, reason=NOT_SENT) for tx in left}
        answers = await self._sender.send([raw for raw, _ in left.values()]) if left else ()
        for tx, answer in zip(left, answers, strict=True):
            if not await self._sender.accepted(answer, tx):
                state: Literal["pending", "failed"] = "pending" if is_taken(answer) else "failed"
                ends[tx] = Settlement(state=state, tx=tx, reason=str(answer))
        return ends

    async def is_dead(self, raw: bytes) -> bool:
        """Whether these bytes can never do anything: their nonce is used, or their sender cannot pay, or the
        key that a sponsor sends them to has no delegate and has used the nonce of its authorisation.
        """
        unsigned, sender = parse(raw)
        if delegate.call_in(unsigned.data):
            code = await self._rpc.call("eth_getCode", [unsigned.to, "latest"])
            used = await self._receipts.used(unsigned.to, final=False)
            if code == "0x" and all(one.nonce < used for one in unsigned.authorizations):
                return True
        if await self._receipts.used(sender, final=False) > unsigned.nonce:
            return True
        if unsigned.payer:
            return False
        return await self._rpc.balance(sender) < unsigned.gas * unsigned.max_fee + unsigned.value

    async def held(self, requests: Sequence[TxRequest], sender: str) -> int | None:
        """The unused nonce of this run's earlier intent to write the same entry.

        The earlier bytes may still be sent; a replacement with the same nonce excludes them.
        """
        request = requests[0]
        if len(requests) != 1 or request.role is not Role.IDENTITY or not request.run:
            return None
        earlier = [parse(raw)[0] for raw in await self._journal.unmined(request.run)]
        text = entry_text(request.data)  # an entry's file in a Reputation registry has its time in it
        nonces = [one.nonce for one in earlier if text is not None and entry_text(one.data) == text]
        used = await self._receipts.used(sender) if nonces else 0
        return max((nonce for nonce in nonces if nonce >= used), default=None)
