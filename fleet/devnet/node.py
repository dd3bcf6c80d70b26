"""Operations of a local anvil only: send from unlocked accounts, set balances, mine on demand."""

from __future__ import annotations

from typing import Any

import anyio

from fleet.chain.node.abi import FUNCTIONS, describe_revert
from fleet.chain.node.hexes import as_bytes, as_dict
from fleet.chain.node.rpc import Rpc
from fleet.errors import RpcError, TxFailed

GAS = 30_000_000
"""Gas limit of a set-up transaction; unused gas is not billed, and no estimate is needed."""

RECEIPT_WAIT_S = 15.0
POLL_S = 0.002


async def transact(rpc: Rpc, sender: str, to: str | None, data: bytes, *, gas: int = GAS) -> dict[str, Any]:
    """The receipt of one transaction from an unlocked account; `to` None creates a contract.

    Waits for it, because anvil 1.7.1 may strand a transaction in its pool forever when the one before it is
    mined between the check of its nonce and its entry. Raises TxFailed with the decoded reason on a revert.
    """
    tx = transaction(sender, to, data, gas=gas)
    receipt = await await_receipt(rpc, await rpc.call("eth_sendTransaction", [tx]))
    if receipt["status"] != "0x1":
        reason = await _reason(rpc, tx)
        raise TxFailed(
            f"reverted: {reason or 'no reason given'}",
            kind="reverted",
            tx=receipt["transactionHash"],
            gas_used=int(receipt["gasUsed"], 16),
        )
    return receipt


async def invoke(rpc: Rpc, sender: str, to: str, name: str, *args: object) -> dict[str, Any]:
    """`transact` for one function of the platform, by name."""
    return await transact(rpc, sender, to, FUNCTIONS[name].encode(*args))


async def create(rpc: Rpc, sender: str, code: bytes) -> str:
    """The address of a new contract."""
    return str((await transact(rpc, sender, None, code))["contractAddress"]).lower()


async def fund(rpc: Rpc, address: str, wei: int) -> None:
    """Sets the native balance of `address` to exactly `wei`."""
    await rpc.call("anvil_setBalance", [address, hex(wei)])


async def has_code(rpc: Rpc, address: str) -> bool:
    return bool(as_bytes(await rpc.call("eth_getCode", [address, "latest"])))


def transaction(sender: str, to: str | None, data: bytes, *, gas: int = GAS) -> dict[str, str]:
    """Parameters of `eth_sendTransaction`."""
    tx = {"from": sender, "data": "0x" + data.hex(), "gas": hex(gas)}
    return tx if to is None else tx | {"to": to}


async def await_receipt(rpc: Rpc, tx: str) -> dict[str, Any]:
    """The receipt once a block holds the transaction; TxFailed when none does in time."""
    with anyio.move_on_after(RECEIPT_WAIT_S):
        while True:
            answer = await rpc.call("eth_getTransactionReceipt", [tx])
            if answer is not None:
                return as_dict(answer)
            await anyio.sleep(POLL_S)
    raise TxFailed(f"no receipt within {RECEIPT_WAIT_S:.0f} s", kind="not_mined", tx=tx)


async def _reason(rpc: Rpc, tx: dict[str, str]) -> str:
    try:
        await rpc.call("eth_call", [tx, "latest"])
    except RpcError as error:
        return describe_revert(as_bytes(error.data or "0x"))
    return ""
