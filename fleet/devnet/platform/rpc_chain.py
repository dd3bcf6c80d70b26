"""The real chain port: the diamond over JSON-RPC, and the meter's key that signs debits."""

from __future__ import annotations

import anyio

from fleet.chain.keys import Secret, address_of
from fleet.chain.node import abi
from fleet.chain.node.hexes import as_int
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing import tx
from fleet.devnet.node import await_receipt
from fleet.errors import RpcError, TxFailed

METER_GAS = 200_000


class RpcChain:
    """One diamond on one node. Without a meter key every debit fails."""

    def __init__(self, rpc: Rpc, diamond: str, meter_key: Secret | None) -> None:
        self._rpc, self._diamond, self._key = rpc, diamond, meter_key
        self._nonces = anyio.Lock()  # one debit at a time between reading the nonce and sending
        self._chain_id = 0

    async def owner_of_name(self, name: str) -> str:
        return str(await self._rpc.view(self._diamond, "ownerOfName", name)).lower()

    async def id_of_name(self, name: str) -> int:
        return int(await self._rpc.view(self._diamond, "idOfName", name))

    async def metadata(self, agent_id: int, key: bytes) -> bytes:
        return bytes(await self._rpc.view(self._diamond, "metadata", agent_id, key))

    async def credit_of(self, address: str) -> int:
        return int(await self._rpc.view(self._diamond, "creditOf", address))

    async def meter(self, address: str, wei: int) -> None:
        if self._key is None:
            raise TxFailed("no meter key", kind="not_mined")
        async with self._nonces:
            sender = address_of(self._key)
            if not self._chain_id:
                self._chain_id = as_int(await self._rpc.call("eth_chainId"))
            nonce = as_int(await self._rpc.call("eth_getTransactionCount", [sender, "pending"]))
            price = as_int(await self._rpc.call("eth_gasPrice"))
            unsigned = tx.UnsignedTx(
                chain_id=self._chain_id,
                nonce=nonce,
                tip=0,
                max_fee=2 * price,
                gas=METER_GAS,
                to=self._diamond,
                data=abi.FUNCTIONS["meter"].encode(address, wei),
            )
            try:
                raw = "0x" + tx.sign(unsigned, self._key).raw.hex()
                sent = str(await self._rpc.call("eth_sendRawTransaction", [raw]))
            except RpcError as error:
                raise TxFailed(f"the node refused the debit: {error}", kind="not_mined") from None
        if as_int((await await_receipt(self._rpc, sent)).get("status")) != 1:
            raise TxFailed("the debit was reverted", kind="reverted", tx=sent)

    async def aclose(self) -> None:
        await self._rpc.aclose()
