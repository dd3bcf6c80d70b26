"""Our bytes are eth_account's bytes."""

from __future__ import annotations

import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from fleet.chain.keys import Secret, address_of
from fleet.chain.tx import HALF_N, UnsignedTx, parse, rlp_decode, rlp_encode, sign, tx_hash

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


@given(TXS, KEYS)
def test_signature_is_low_s_and_deterministic(tx: UnsignedTx, raw_key: bytes) -> None:
    raw = sign(tx, Secret(raw_key)).raw
    assert raw == sign(tx, Secret(raw_key)).raw
    fields = rlp_decode(raw[1:])
    assert isinstance(fields, list)
    assert int.from_bytes(fields[11], "big") <= HALF_N


NESTED = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=5), max_leaves=8)


@given(NESTED)
def test_rlp_round_trip(item: object) -> None:
    assert rlp_decode(rlp_encode(item)) == item  # type: ignore[arg-type]


@given(st.binary(max_size=60))
def test_parse_of_anything_is_a_value_error(raw: bytes) -> None:
    for candidate in (raw, b"\x02" + raw):
        with pytest.raises(ValueError, match=r"."):
            parse(candidate)


def test_high_s_is_refused() -> None:
    tx = UnsignedTx(chain_id=1, nonce=0, tip=0, max_fee=1, gas=21_000, to="0x" + "11" * 20)
    fields = rlp_decode(sign(tx, Secret(b"\x01" * 32)).raw[1:])
    assert isinstance(fields, list)
    high = 2 * HALF_N + 1 - int.from_bytes(fields[11], "big")
    forged = b"\x02" + rlp_encode([*fields[:11], high.to_bytes(32, "big")])
    with pytest.raises(ValueError, match="canonical"):
        parse(forged)
