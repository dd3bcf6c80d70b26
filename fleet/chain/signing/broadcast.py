"""Sends signed bytes to the node, and interprets its answers."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from fleet.chain.node.rpc import Rpc
from fleet.chain.node.words import Meaning, meaning_of
from fleet.chain.signing.receipts import Receipts
from fleet.errors import RpcError, Unfunded, Unreachable
from fleet.retry import NODE_WRITE


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
