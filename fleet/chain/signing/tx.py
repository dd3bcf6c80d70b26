"""Transactions of EIP-1559, of EIP-7702 and of Tempo: encoded, decoded, and compared with the request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from coincurve import PublicKey

from fleet.chain.keys import Secret, address_of, public_address
from fleet.chain.node.digest import keccak256
from fleet.chain.node.recursion_limit import recursion_limit_kept

if TYPE_CHECKING:
    from eth_account.typed_transactions.dynamic_fee_transaction import DynamicFeeTransaction

TYPE_2 = b"\x02"
TYPE_4 = b"\x04"
"""With authorisations (EIP-7702)."""
TYPE_76 = b"\x76"
"""Tempo's: calls of a key, and the signature of who pays for them."""
_PAYER = b"\x78"
"""Before what the payer of a fee signs."""
_MAGIC = b"\x05"
"""Before what an authorisation signs."""
HALF_N = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Half of the order of secp256k1: a larger `s` is the same signature in its malleable form (EIP-2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """A key's signed word that the code at `address` acts for it, valid at its `nonce`; zero ends that."""

    chain_id: int
    address: str
    nonce: int
    y_parity: int
    r: int
    s: int

    @property
    def authority(self) -> str:
        """The address of the key that signed; ValueError when the signature is not canonical."""
        if self.y_parity not in (0, 1) or self.s > HALF_N:
            raise ValueError("not a canonical signature")
        return _signer(
            _authorization_digest(self.chain_id, self.address, self.nonce), self.y_parity, self.r, self.s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedTx:
    """The fields of a transaction of type 2, of type 4 with authorisations, or of Tempo's with one call and
    the address of who pays its fee; its access list is empty.

    Fees are wei per gas.
    """

    chain_id: int
    nonce: int
    tip: int
    max_fee: int
    gas: int
    to: str
    value: int = 0
    data: bytes = b""
    authorizations: tuple[Authorization, ...] = ()
    payer: str = ""


@dataclass(frozen=True, slots=True)
class SignedTx:
    """Raw bytes as broadcast, and `0x` + their hash."""

    raw: bytes
    hash: str


def sign(unsigned: UnsignedTx, key: Secret, payer: Secret | None = None) -> SignedTx:
    """Sign with a deterministic nonce (RFC 6979) and low s; the same input gives the same bytes.

    ValueError when the bytes do not decode to exactly these fields: what was judged is what is signed.
    """
    if unsigned.payer:
        assert payer is not None, "who pays signs too"
        raw = _type_76(unsigned, key, payer)
    else:
        raw = _type_4(unsigned, key) if unsigned.authorizations else _type_2(unsigned, key)
    decoded = _decoded_76(raw)[0] if unsigned.payer else _decoded(raw)[0]
    if decoded != unsigned:
        raise ValueError("the signed bytes are not the transaction that was judged")
    return SignedTx(raw, tx_hash(raw))


def authorize(key: Secret, *, chain_id: int, address: str, nonce: int) -> Authorization:
    """Sign that the code at this address acts for the key, on this chain and from this nonce on."""
    signature = key.sign(_authorization_digest(chain_id, address, nonce))
    return Authorization(
        chain_id=chain_id,
        address=address.lower(),
        nonce=nonce,
        y_parity=signature[64],
        r=_int(signature[:32]),
        s=_int(signature[32:64]),
    )


def _authorization_digest(chain_id: int, address: str, nonce: int) -> bytes:
    import rlp  # as below

    return keccak256(_MAGIC + rlp.encode([chain_id, bytes.fromhex(address[2:]), nonce]))


def _signer(digest: bytes, parity: int, r: int, s: int) -> str:
    try:
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([parity])
        return public_address(PublicKey.from_signature_and_message(signature, digest, hasher=None))
    except (ValueError, OverflowError):
        raise ValueError("the signature does not recover to a key") from None


def _type_4(unsigned: UnsignedTx, key: Secret) -> bytes:
    import rlp  # as below

    fields = _fields_4(unsigned)
    signature = key.sign(keccak256(TYPE_4 + rlp.encode(fields)))
    ends = [signature[64], _int(signature[:32]), _int(signature[32:64])]
    return TYPE_4 + bytes(rlp.encode([*fields, *ends]))


def _fields_4(unsigned: UnsignedTx) -> list[Any]:
    fees = [unsigned.chain_id, unsigned.nonce, unsigned.tip, unsigned.max_fee, unsigned.gas]
    listed = [
        [one.chain_id, bytes.fromhex(one.address[2:]), one.nonce, one.y_parity, one.r, one.s]
        for one in unsigned.authorizations
    ]
    return [*fees, bytes.fromhex(unsigned.to[2:]), unsigned.value, unsigned.data, [], listed]


def _type_76(unsigned: UnsignedTx, key: Secret, payer: Secret) -> bytes:
    import rlp  # as below

    by_key = key.sign(_digest_76(unsigned))
    by_payer = payer.sign(_digest_76(unsigned, paid=address_of(key)))
    paid = [by_payer[64], _int(by_payer[:32]), _int(by_payer[32:64])]
    ends = by_key[:64] + bytes([27 + by_key[64]])
    return TYPE_76 + bytes(rlp.encode([*_fields_76(unsigned), b"", paid, [], ends]))


def _fields_76(unsigned: UnsignedTx) -> list[Any]:
    """All before the token of the fee, the payer's choice: one call, nonces in order, no deadline."""
    fees = [unsigned.chain_id, unsigned.tip, unsigned.max_fee, unsigned.gas]
    call = [bytes.fromhex(unsigned.to[2:]), unsigned.value, unsigned.data]
    return [*fees, [call], [], 0, unsigned.nonce, b"", b""]


def _digest_76(unsigned: UnsignedTx, *, paid: str = "") -> bytes:
    """What the key signs, or, with the key's address, what the payer signs."""
    import rlp  # as below

    whose = bytes.fromhex(paid[2:]) if paid else b"\x00"
    return keccak256((_PAYER if paid else TYPE_76) + rlp.encode([*_fields_76(unsigned), b"", whose, []]))


def _decoded_76(raw: bytes) -> tuple[UnsignedTx, str]:
    """The fields and the sender; ValueError for any form but the one that is signed here."""
    import rlp  # as below

    try:
        fields: Any = rlp.decode(raw[1:])
        chain_id, tip, max_fee, gas, ((to, value, data),), _, _, nonce, _, _, _, (parity, r, s), _, ends = (
            fields
        )
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
        sender = _signer(_digest_76(unsigned), ends[64] - 27, _int(ends[:32]), _int(ends[32:64]))
        payer = _signer(_digest_76(unsigned, paid=sender), _int(parity), _int(r), _int(s))
        whole = rlp.encode([*_fields_76(unsigned), b"", [_int(parity), _int(r), _int(s)], [], ends])
    except Exception:  # rlp's own exceptions, and what hostile fields raise
        raise ValueError("not a transaction of Tempo's with one call and a payer") from None
    if whole != raw[1:] or len(to) != 20 or len(ends) != 65 or max(_int(s), _int(ends[32:64])) > HALF_N:
        raise ValueError("not a transaction of Tempo's with one call and a payer")
    return replace(unsigned, payer=payer), sender


def _type_2(unsigned: UnsignedTx, key: Secret) -> bytes:
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
    return TYPE_2 + bytes(_eip1559()({**plain.dictionary, "v": signature[64], "r": r, "s": s}).payload())


def tx_hash(raw: bytes) -> str:
    """The transaction hash of these bytes."""
    return "0x" + keccak256(raw).hex()


def parse(raw: bytes) -> tuple[UnsignedTx, str]:
    """The fields and the sender of signed bytes of type 2, 4 or 0x76; ValueError for anything else."""
    if raw[:1] == TYPE_76:
        return _decoded_76(raw)
    with recursion_limit_kept():
        from eth_account import Account  # 0.6 s to import: only code that signs or recovers pays for it

    unsigned, v, r, s = _decoded(raw)
    if v not in (0, 1) or s > HALF_N:
        raise ValueError("not a canonical signature")
    if unsigned.authorizations:
        import rlp  # as below

        return unsigned, _signer(keccak256(TYPE_4 + rlp.encode(_fields_4(unsigned))), v, r, s)
    try:
        return unsigned, str(Account.recover_transaction(raw)).lower()
    except Exception:  # eth_keys has its own exceptions
        raise ValueError("the signature does not recover to a key") from None


def _decoded(raw: bytes) -> tuple[UnsignedTx, int, int, int]:
    """The fields with `v`, `r` and `s`, by rlp directly: a tenth of the time of eth-account's decoder."""
    import rlp  # as below

    fields: Any = ()
    try:
        if raw[:1] in (TYPE_2, TYPE_4):
            fields = rlp.decode(raw[1:])
    except Exception:  # rlp's own exceptions, and RecursionError
        raise ValueError("not a type-2 or type-4 transaction") from None
    is_list = isinstance(fields, list)
    listed = fields.pop(9) if is_list and raw[:1] == TYPE_4 and len(fields) == 13 else None
    if (
        not is_list
        or len(fields) != 12
        or not all(isinstance(one, bytes) for one in (*fields[:8], *fields[9:]))
    ):
        raise ValueError("not a type-2 or type-4 transaction")
    if raw[:1] == TYPE_4 and not listed:
        raise ValueError("a transaction of type 4 without an authorisation")
    chain_id, nonce, tip, max_fee, gas, to, value, data, access, v, r, s = fields
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
        authorizations=tuple(map(_authorization, listed or ())),
    )
    return unsigned, _int(v), _int(r), _int(s)


def _authorization(fields: Any) -> Authorization:  # noqa: ANN401  decoded RLP
    if not isinstance(fields, list) or len(fields) != 6 or not all(isinstance(one, bytes) for one in fields):
        raise ValueError("an authorisation has six fields")
    chain_id, address, nonce, parity, r, s = fields
    if len(address) != 20:
        raise ValueError("an authorisation names an address")
    return Authorization(
        chain_id=_int(chain_id),
        address="0x" + address.hex(),
        nonce=_int(nonce),
        y_parity=_int(parity),
        r=_int(r),
        s=_int(s),
    )


def _int(blob: bytes) -> int:
    return int.from_bytes(blob, "big")


@cache
def _eip1559() -> type[DynamicFeeTransaction]:
    with recursion_limit_kept():
        # 0.6 s to import: only code that signs or decodes pays for it
        from eth_account.typed_transactions.dynamic_fee_transaction import DynamicFeeTransaction

    return DynamicFeeTransaction
