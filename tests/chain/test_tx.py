"""Our bytes are eth_account's bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import rlp
from eth_account import Account
from eth_account.typed_transactions.dynamic_fee_transaction import DynamicFeeTransaction
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes
from hypothesis import given
from hypothesis import strategies as st

from fleet.chain.keys import Secret, address_of
from fleet.chain.signing.tx import HALF_N, UnsignedTx, authorize, parse, sign, tx_hash

WORD = st.integers(0, 2**64 - 1)
KEYS = st.integers(1, 2**255).map(lambda number: number.to_bytes(32, "big"))
TXS = st.builds(
    UnsignedTx,
    chain_id=st.integers(1, 2**32),
    nonce=st.integers(0, 2**40),
    tip=WORD,
    max_fee=WORD,
    gas=st.integers(21_000, 2**40),
    to=st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()),
    value=st.integers(0, 2**128),
    data=st.binary(max_size=300),
)


@given(TXS, KEYS)
def test_signed_bytes_equal_eth_account(tx: UnsignedTx, raw_key: bytes) -> None:
    theirs = Account.sign_transaction(
        {
            "type": 2,
            "chainId": tx.chain_id,
            "nonce": tx.nonce,
            "maxPriorityFeePerGas": tx.tip,
            "maxFeePerGas": tx.max_fee,
            "gas": tx.gas,
            "to": bytes.fromhex(tx.to[2:]),
            "value": tx.value,
            "data": tx.data,
        },
        raw_key,
    )
    ours = sign(tx, Secret(raw_key))
    assert ours.raw == bytes(theirs.raw_transaction)
    assert ours.hash == "0x" + bytes(theirs.hash).hex()


@given(TXS, KEYS)
def test_own_bytes_are_read_back(tx: UnsignedTx, raw_key: bytes) -> None:
    key = Secret(raw_key)
    signed = sign(tx, key)
    assert parse(signed.raw) == (tx, address_of(key))
    assert tx_hash(signed.raw) == signed.hash


@given(TXS, KEYS, KEYS, st.integers(0, 2**40))
def test_what_a_key_authorises_and_who_sends_it_equal_eth_account(
    tx: UnsignedTx, raw_key: bytes, authority: bytes, nonce: int
) -> None:
    theirs = Account.sign_authorization(
        {"chainId": tx.chain_id, "address": bytes.fromhex(tx.to[2:]), "nonce": nonce}, authority
    )
    ours = authorize(Secret(authority), chain_id=tx.chain_id, address=tx.to, nonce=nonce)
    assert (ours.y_parity, ours.r, ours.s) == (theirs.y_parity, theirs.r, theirs.s)
    assert ours.authority == address_of(Secret(authority)) == "0x" + bytes(theirs.authority).hex()
    listed = {
        "type": 4,
        "chainId": tx.chain_id,
        "nonce": tx.nonce,
        "maxPriorityFeePerGas": tx.tip,
        "maxFeePerGas": tx.max_fee,
        "gas": tx.gas,
        "to": bytes.fromhex(tx.to[2:]),
        "value": tx.value,
        "data": tx.data,
        "authorizationList": [theirs],
    }
    sent = replace(tx, authorizations=(ours,))
    signed = sign(sent, Secret(raw_key))
    assert signed.raw == bytes(Account.sign_transaction(listed, raw_key).raw_transaction)
    assert parse(signed.raw) == (sent, address_of(Secret(raw_key)))


LISTED = replace(
    UnsignedTx(chain_id=1, nonce=0, tip=0, max_fee=1, gas=21_000, to="0x" + "11" * 20),
    authorizations=(authorize(Secret(b"\x02" * 32), chain_id=1, address="0x" + "22" * 20, nonce=0),),
)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (9, []),
        (9, b""),
        (9, [b""]),
        (9, [[b""] * 6]),
        (9, [[b"", b"\x22" * 20, b"", b"", b"", []]]),
        (8, [b"x"]),
    ],
)
def test_other_lists_of_authorisations_are_not_read(at: int, value: object) -> None:
    fields = rlp.decode(sign(LISTED, Secret(b"\x01" * 32)).raw[1:])
    fields[at] = value
    with pytest.raises(ValueError, match=r"."):
        parse(b"\x04" + rlp.encode(fields))


def test_an_authorisation_with_a_signature_in_its_other_form_has_no_signer() -> None:
    (word,) = LISTED.authorizations
    for other in (
        replace(word, s=2 * HALF_N + 1 - word.s, y_parity=1 - word.y_parity),
        replace(word, y_parity=27),
        replace(word, r=0),
        replace(word, r=2**256),
    ):
        with pytest.raises(ValueError, match="signature"):
            _ = other.authority


@given(TXS, KEYS)
def test_signature_is_low_s_and_deterministic(tx: UnsignedTx, raw_key: bytes) -> None:
    raw = sign(tx, Secret(raw_key)).raw
    assert raw == sign(tx, Secret(raw_key)).raw
    assert TypedTransaction.from_bytes(HexBytes(raw)).vrs()[2] <= HALF_N


@given(st.binary(max_size=60))
def test_parse_of_anything_is_a_value_error(raw: bytes) -> None:
    for candidate in (raw, b"\x02" + raw, b"\x04" + raw):
        with pytest.raises(ValueError, match=r"."):
            parse(candidate)


PLAIN = UnsignedTx(chain_id=1, nonce=0, tip=0, max_fee=1, gas=21_000, to="0x" + "11" * 20)


def forged(**changes: object) -> bytes:
    """Signed bytes with other fields in them, encoded as they should be."""
    tx = TypedTransaction.from_bytes(HexBytes(sign(PLAIN, Secret(b"\x01" * 32)).raw))
    tx.transaction.dictionary |= changes  # type: ignore[attr-defined]
    return tx.encode()


def test_high_s_is_refused() -> None:
    v, _, s = TypedTransaction.from_bytes(HexBytes(forged())).vrs()
    with pytest.raises(ValueError, match="canonical"):
        parse(forged(s=2 * HALF_N + 1 - s, v=1 - v))


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 2},
        {"v": 27},
        {"r": 0},
        {"s": 0},
        {"to": b""},
        {"accessList": ({"address": b"\x11" * 20, "storageKeys": ()},)},
    ],
)
def test_what_we_never_sign_is_not_read(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(forged(**changes))


@pytest.mark.parametrize("change", [{"value": 1}, {"to": b"\x22" * 20}, {"data": b"\x01"}, {"nonce": 1}])
def test_bytes_that_say_something_else_are_not_signed(
    change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = DynamicFeeTransaction.payload

    def crooked(self: DynamicFeeTransaction) -> bytes:
        return encoded(DynamicFeeTransaction(self.dictionary | change))

    monkeypatch.setattr(DynamicFeeTransaction, "payload", crooked)
    with pytest.raises(ValueError, match="not the transaction that was judged"):
        sign(PLAIN, Secret(b"\x01" * 32))
