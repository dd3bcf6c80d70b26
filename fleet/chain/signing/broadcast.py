"""Sends signed bytes to one node: nonces, the answers to them, and their receipts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import anyio

from fleet.chain.node import abi
from fleet.chain.node.errors import Meaning, meaning_of
from fleet.chain.node.hexes import as_bytes, as_dict, as_int
from fleet.chain.node.rpc import Call, Rpc, is_oog
from fleet.chain.ports import Log, Receipt
from fleet.chain.signing import delegate
from fleet.chain.signing.tx import UnsignedTx
from fleet.errors import RpcError, Unfunded, Unreachable
from fleet.retry import NODE_WRITE, RECEIPT

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


class Receipts:
    """Receipts from one node. A receipt counts once `confirmations` blocks are on top of its block."""

    def __init__(self, rpc: Rpc, *, deadline_s: float = 60.0, confirmations: int = 0) -> None:
        self._rpc = rpc
        self._deadline_s = deadline_s
        self._confirmations = confirmations

    async def lookup(self, hashes: Sequence[str]) -> list[Receipt | None]:
        """Receipts by hash; None for a transaction without one."""
        return (await self.look(hashes))[1]

    async def look(self, hashes: Sequence[str]) -> tuple[int, list[Receipt | None]]:
        """The node's newest block, and the receipts as it has them then."""
        calls: list[Call] = [("eth_blockNumber", [])]
        calls += [("eth_getTransactionReceipt", [tx]) for tx in hashes]
        head, *found = await self._rpc.batch(calls)
        for answer in (head, *found):
            if isinstance(answer, RpcError):
                raise answer
        newest = as_int(head)
        top = newest - self._confirmations
        receipts = [_receipt(answer, tx) for answer, tx in zip(found, hashes, strict=True)]
        counted = [receipt if receipt and receipt.block <= top else None for receipt in receipts]
        if newest_own := max((one.block for one in counted if one), default=0):
            self._rpc.seen(newest_own)
        return newest, counted

    async def wait(self, hashes: Sequence[str]) -> list[Receipt | None]:
        """Receipts by hash; None for transactions that were in no block within the deadline.

        A node that is briefly unreachable does not end the wait: the transactions are already sent.
        """
        got: dict[str, Receipt] = {}
        empty = 0
        with anyio.move_on_after(self._deadline_s):
            while len(got) < len(set(hashes)):
                open_ = [tx for tx in hashes if tx not in got]
                try:
                    found = await self.lookup(open_)
                except Unreachable as error:
                    if not error.retryable:
                        raise
                    found = [None] * len(open_)
                fresh = {receipt.tx: receipt for receipt in found if receipt}
                got.update(fresh)
                empty = 0 if fresh else empty + 1
                if len(got) < len(set(hashes)):
                    await anyio.sleep(RECEIPT.pause(empty))
        return [got.get(tx) for tx in hashes]

    async def known(self, tx: str) -> bool:
        """Whether the node has this transaction, mined or pending."""
        return await self._rpc.call("eth_getTransactionByHash", [tx]) is not None

    async def used(self, sender: str, *, final: bool = True) -> int:
        """Number of this sender's used nonces; `final`: only in blocks with enough confirmations."""
        block = "latest"
        if final and self._confirmations:
            block = hex(max(await self._rpc.head() - self._confirmations, 0))
        return await self._rpc.nonce(sender, block)

    async def explain(self, receipt: Receipt, unsigned: UnsignedTx, sender: str) -> Receipt:
        """The receipt with `failure` and `reason`, found by replaying it on the previous block."""
        if receipt.status == 1:
            return receipt
        # from the key itself: in the block before, it may have no delegate
        unsigned, sender = delegate.acted(unsigned, sender)
        call = {
            "from": sender,
            "to": unsigned.to,
            "data": "0x" + unsigned.data.hex(),
            "gas": hex(unsigned.gas),
            "value": hex(unsigned.value),
        }
        reason, starved = "", False
        try:
            await self._rpc.call("eth_call", [call, hex(max(receipt.block - 1, 0))])
        except RpcError as error:
            reason, starved = _reason(error), is_oog(error)
        except Unreachable:
            pass  # return the receipt without its reason
        # A facet that runs out of gas returns nothing and leaves its diamond 1/64 of the gas (EIP-150).
        dry = receipt.gas_used * 100 >= unsigned.gas * 98
        oog = starved or (dry and not reason)
        return dataclasses.replace(receipt, failure="oog" if oog else "reverted", reason=reason)


def minted_id(receipt: Receipt, diamond: str, owner: str) -> int:
    """The id that `owner` registered in this transaction, by the diamond's events; 0 for none."""
    topic = "0x" + "0" * 24 + owner[2:]
    for log in receipt.logs:
        if log.address == diamond and len(log.topics) == 3 and log.topics[::2] == (abi.REGISTERED, topic):
            return as_int(log.topics[1])
    return 0


def _reason(error: RpcError) -> str:
    try:
        return abi.describe_revert(as_bytes(error.data))
    except Unreachable:
        return ""


def _receipt(answer: object, tx: str) -> Receipt | None:
    if answer is None:
        return None
    fields = as_dict(answer)
    if str(fields.get("transactionHash")).lower() != tx:
        raise Unreachable("the node answered with the receipt of another transaction")
    if fields.get("blockNumber") is None:
        return None
    logs = fields.get("logs")
    if not isinstance(logs, list):
        raise Unreachable("the node answered with a receipt without logs")
    return Receipt(
        tx=tx,
        status=as_int(fields.get("status")),
        gas_used=as_int(fields.get("gasUsed")),
        block=as_int(fields.get("blockNumber")),
        logs=tuple(_log(as_dict(log)) for log in logs),
    )


def _log(fields: dict[str, Any]) -> Log:
    topics = fields.get("topics")
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise Unreachable("the node answered with a log without topics")
    return Log(
        address=str(fields.get("address", "")).lower(),
        topics=tuple(topic.lower() for topic in topics),
        data=as_bytes(fields.get("data", "0x")),
    )


class Broadcast:
    """Sends to one node; the caller has journalled the bytes."""

    def __init__(self, rpc: Rpc, receipts: Receipts) -> None:
        self._rpc, self._receipts = rpc, receipts

    async def send(self, raws: Sequence[bytes]) -> list[object]:
        """Send, and return the node's answers. After a lost answer the same bytes are safely sent again."""
        calls = [("eth_sendRawTransaction", ["0x" + raw.hex()]) for raw in raws]
        for attempt in range(NODE_WRITE.attempts - 1):
            try:
                return await self._rpc.batch(calls)
            except Unreachable as error:
                if not error.retryable:
                    raise
                await anyio.sleep(NODE_WRITE.pause(attempt))
        return await self._rpc.batch(calls)

    async def accepted(self, answer: object, tx: str) -> bool:
        """Whether the node has these bytes, whatever it answered."""
        if (isinstance(answer, str) and answer.lower() == tx) or _means(answer, Meaning.KNOWN):
            return True
        return is_taken(answer) and await self._receipts.known(tx)


def is_taken(answer: object) -> bool:
    """Whether the node has another transaction with this nonce."""
    return _means(answer, Meaning.TAKEN)


def refusal(answer: object, sender: str, role: str) -> RpcError:
    """Why the node did not take the bytes of a key; one that cannot pay is named with its role."""
    if not isinstance(answer, RpcError):
        return RpcError("the node took another hash")
    if not _means(answer, Meaning.POOR):
        return answer
    poor = Unfunded(f"{answer}: {sender}, the {role} key", code=answer.code, data=answer.data)
    poor.remedy = f"send it funds: {sender}"
    return poor


def _means(answer: object, meaning: Meaning) -> bool:
    return isinstance(answer, RpcError) and meaning_of(answer.code, str(answer), answer.data) is meaning
