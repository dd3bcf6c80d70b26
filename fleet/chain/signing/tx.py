"""EIP-1559 transactions: encoded by eth-account, decoded, and compared with the request."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fleet.chain.keys import Secret
from fleet.chain.node.digest import keccak256
from fleet.chain.node.recursion_limit import recursion_limit_kept

if TYPE_CHECKING:
    from eth_account.typed_transactions.dynamic_fee_transaction import DynamicFeeTransaction

TYPE_2 = b"\x02"
HALF_N = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Half of the order of secp256k1: a larger `s` is the same signature in its malleable form (EIP-2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedTx:
    """The fields of a type-2 transaction with an empty access list. Fees are wei per gas."""

    chain_id: int
    nonce: int
    tip: int
    max_fee: int
    gas: int
    to: str
    value: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class SignedTx:
    """Raw bytes as broadcast, and `0x` + their hash."""

    raw: bytes
    hash: str


def sign(unsigned: UnsignedTx, key: Secret) -> SignedTx:
    """Sign with a deterministic nonce (RFC 6979) and low s; the same input gives the same bytes.

    ValueError when the bytes do not decode to exactly these fields: what was judged is what is signed.
    """
    fields: dict[str, Any] = {
        "chainId": unsigned.chain_id,
        "nonce": unsigned.nonce,
        "maxPriorityFeePerGas": unsigned.tip,
        "maxFeePerGas": unsigned.max_fee,
        "gas": unsigned.gas,
        "to": bytes.fromhex(unsigned.to[2:]),
        "value": unsigned.value,
        "data": unsigned.data,
        "accessList": (),
    }
    # not by Account, which rebuilds the key each time: that costs more than everything else
    plain = _eip1559()(fields)
    signature = key.sign(plain.hash())
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    raw = TYPE_2 + _eip1559()({**plain.dictionary, "v": signature[64], "r": r, "s": s}).payload()
    if _decoded(raw)[0] != unsigned:
        raise ValueError("the signed bytes are not the transaction that was judged")
    return SignedTx(raw, tx_hash(raw))


def tx_hash(raw: bytes) -> str:
    """The transaction hash of these bytes."""
    return "0x" + keccak256(raw).hex()


def parse(raw: bytes) -> tuple[UnsignedTx, str]:
    """The fields and the sender of signed type-2 bytes; ValueError when they are anything else."""
    with recursion_limit_kept():
        from eth_account import Account  # 0.6 s to import: only code that signs or recovers pays for it

    unsigned, v, s = _decoded(raw)
    if v not in (0, 1) or s > HALF_N:
        raise ValueError("not a canonical signature")
    try:
        return unsigned, str(Account.recover_transaction(raw)).lower()
    except Exception:  # eth_keys has its own exceptions
        raise ValueError("the signature does not recover to a key") from None


def _decoded(raw: bytes) -> tuple[UnsignedTx, int, int]:
    """The fields with `v` and `s`, decoded by rlp directly: a tenth of the time of eth-account's decoder."""
    import rlp  # as below

    fields: Any = ()
    try:
        if raw[:1] == TYPE_2:
            fields = rlp.decode(raw[1:])
    except Exception:  # rlp's own exceptions, and RecursionError
        raise ValueError("not a type-2 transaction") from None
    if len(fields) != 12 or not all(isinstance(one, bytes) for one in (*fields[:8], *fields[9:])):
        raise ValueError("not a type-2 transaction")
    chain_id, nonce, tip, max_fee, gas, to, value, data, access, v, _, s = fields
    if list(access) or len(to) != 20:
        raise ValueError("a transaction with an access list, or without a recipient")
    unsigned = UnsignedTx(
        chain_id=_int(chain_id),
        nonce=_int(nonce),
        tip=_int(tip),
        max_fee=_int(max_fee),
        gas=_int(gas),
        to="0x" + to.hex(),
        value=_int(value),
        data=data,
    )
    return unsigned, _int(v), _int(s)


def _int(blob: bytes) -> int:
    return int.from_bytes(blob, "big")


@cache
def _eip1559() -> type[DynamicFeeTransaction]:
    with recursion_limit_kept():
        # 0.6 s to import: only code that signs or decodes pays for it
        from eth_account.typed_transactions.dynamic_fee_transaction import DynamicFeeTransaction

    return DynamicFeeTransaction
