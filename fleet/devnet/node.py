"""What only a local anvil can do: send from unlocked accounts, set balances, mine on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio

from fleet.chain.abi import FUNCTIONS, describe_revert
from fleet.chain.hexes import as_bytes, as_dict
from fleet.chain.rpc import Rpc
from fleet.errors import RpcError, TxFailed

GAS = 30_000_000
"""Gas limit of a set-up transaction; what is not used is not billed, and no estimate is asked for."""

RECEIPT_WAIT_S = 10.0
POLL_S = 0.002


async def transact(rpc: Rpc, sender: str, to: str | None, data: bytes, *, gas: int = GAS) -> dict[str, Any]:
    """The receipt of one transaction from an unlocked account; `to` None creates a contract.

    Raises TxFailed with the decoded reason when it reverts.
    """
    tx = transaction(sender, to, data, gas=gas)
    receipt = (await _receipts(rpc, [await rpc.call("eth_sendTransaction", [tx])]))[0]
    if receipt["status"] != "0x1":
        reason = await _reason(rpc, tx)
        raise TxFailed(
            f"reverted: {reason or 'no reason given'}",
            kind="reverted",
            tx=receipt["transactionHash"],
            gas_used=int(receipt["gasUsed"], 16),
        )
    return receipt


async def invoke(rpc: Rpc, sender: str, to: str, name: str, *args: Any) -> dict[str, Any]:
    """`transact` for one function of the platform, by name."""
    return await transact(rpc, sender, to, FUNCTIONS[name].encode(*args))


async def create_all(rpc: Rpc, sender: str, codes: Sequence[bytes]) -> list[str]:
    """Addresses of the contracts, created in one batch and in this order."""
    first = int(await rpc.call("eth_getTransactionCount", [sender, "pending"]), 16)
    # anvil works on the elements of a batch side by side: only explicit nonces keep their order
    batch = [
        ("eth_sendTransaction", [transaction(sender, None, code) | {"nonce": hex(first + place)}])
        for place, code in enumerate(codes)
    ]
    receipts = await _receipts(rpc, checked(await rpc.batch(batch)))
    if any(receipt["status"] != "0x1" for receipt in receipts):
        raise TxFailed("a contract was not created", kind="reverted")
    return [str(receipt["contractAddress"]).lower() for receipt in receipts]


async def fund(rpc: Rpc, address: str, wei: int) -> None:
    """Sets the native balance of `address` to exactly `wei`."""
    await rpc.call("anvil_setBalance", [address, hex(wei)])


async def has_code(rpc: Rpc, address: str) -> bool:
    return bool(as_bytes(await rpc.call("eth_getCode", [address, "latest"])))


def transaction(sender: str, to: str | None, data: bytes, *, gas: int = GAS) -> dict[str, str]:
    """Parameters of `eth_sendTransaction`."""
    tx = {"from": sender, "data": "0x" + data.hex(), "gas": hex(gas)}
    return tx if to is None else tx | {"to": to}


def checked(answers: list[Any]) -> list[Any]:
    """The answers of a batch; the first error among them is raised."""
    for answer in answers:
        if isinstance(answer, RpcError):
            raise answer
    return answers


async def _receipts(rpc: Rpc, hashes: Sequence[str]) -> list[dict[str, Any]]:
    calls = [("eth_getTransactionReceipt", [each]) for each in hashes]
    with anyio.move_on_after(RECEIPT_WAIT_S):
        while True:
            answers = checked(await rpc.batch(calls))
            if None not in answers:
                return [as_dict(answer) for answer in answers]
            await anyio.sleep(POLL_S)
    raise TxFailed(f"no receipt within {RECEIPT_WAIT_S:.0f} s", kind="not_mined", tx=hashes[0])


async def _reason(rpc: Rpc, tx: dict[str, str]) -> str:
    try:
        await rpc.call("eth_call", [tx, "latest"])
    except RpcError as error:
        return describe_revert(as_bytes(error.data or "0x"))
    return ""
