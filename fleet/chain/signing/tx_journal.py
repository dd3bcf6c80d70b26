"""The signer's journal: a transaction is an ordinary effect."""

from __future__ import annotations

from typing import Any

from fleet.chain.ports import Receipt, Role, TxRequest
from fleet.chain.signing.tx import UnsignedTx
from fleet.store.journal import Journal


class JournalledTx:
    """Implements TxJournal on the fleet's journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def intend_tx(self, run: str, purpose: str, tx_hash: str, raw: bytes, meta: dict[str, Any]) -> int:
        return await self._journal.intend(run, "tx", tx_hash, meta | {"purpose": purpose, "raw": raw.hex()})

    async def still_open(self, effect_id: int) -> None:
        await self._journal.still_open(effect_id)

    async def unmined(self, run: str) -> list[bytes]:
        tried = await self._journal.effects(run, ["tx"], ["open", "failed"])
        mine = [
            one.data for one in tried if one.data.get("role") == Role.IDENTITY and "status" not in one.data
        ]
        return [bytes.fromhex(data["raw"]) for data in mine]

    async def tx_done(self, effect_id: int, status: str, data: dict[str, Any]) -> None:
        await self._journal.resolve(effect_id, "done" if status == "done" else "failed", data)


def intended(request: TxRequest, unsigned: UnsignedTx, sender: str) -> dict[str, Any]:
    """The journal's record of a transaction before it is sent."""
    return {
        "sender": sender,
        "nonce": unsigned.nonce,
        "gas": unsigned.gas,
        "to": unsigned.to,
        "role": str(request.role),
        "key": request.key,
    }


def mined(receipt: Receipt) -> dict[str, Any]:
    """The journal's record of a receipt."""
    return {
        "status": receipt.status,
        "gas_used": receipt.gas_used,
        "block": receipt.block,
        "failure": receipt.failure,
        "reason": receipt.reason,
    }
