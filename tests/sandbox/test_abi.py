"""The small coder against eth_abi and keccak, and against replies made to hurt."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from eth_abi.abi import decode as oracle_decode
from eth_abi.abi import encode as oracle
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from sandbox.chain import contract
from sandbox.chain.abi import AbiError, AbiFunction, decode, encode_call, revert_reason
from sandbox.chain.contract import VIEWS


def test_every_selector_is_the_hash_of_its_signature() -> None:
    writes = {"register": contract.REGISTER, "setMetadata": contract.SET_METADATA}
    writes |= {"approve": contract.APPROVE, "claimDaily": contract.CLAIM_DAILY}
    for name, function in (VIEWS | writes).items():
        signature = f"{name}({','.join(function.takes)})"
        assert function.selector == "0x" + keccak(text=signature)[:4].hex(), signature


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "uint256": st.integers(0, 2**256 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "address": st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()),
    "bool": st.booleans(),
    "bytes32": st.binary(min_size=32, max_size=32),
    "bytes4": st.binary(min_size=4, max_size=4),
    "bytes": st.binary(max_size=100),
    "string": st.text(max_size=40),
}


@given(st.data())
def test_encoding_is_eth_abis(data: st.DataObject) -> None:
    types = tuple(data.draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4)))
    values = tuple(data.draw(VALUES[kind]) for kind in types)
    assert encode_call(AbiFunction("0x01020304", types), values) == "0x01020304" + oracle(types, values).hex()


@given(st.data())
def test_decoding_is_eth_abis(data: st.DataObject) -> None:
    types = data.draw(st.sampled_from([function.gives for function in VIEWS.values()]))
    values = tuple(_draw(data, kind) for kind in types)
    found = decode(types, oracle(types, values))
    assert _lists(found) == _lists(oracle_decode(types, oracle(types, values)))


def _draw(data: st.DataObject, kind: str) -> Any:
    if kind == "(address,bytes4[])[]":
        pair = st.tuples(VALUES["address"], st.lists(VALUES["bytes4"], max_size=3))
        return data.draw(st.lists(pair, max_size=3))
    if kind.endswith("[]"):
        return data.draw(st.lists(VALUES[kind[:-2]], max_size=4))
    return data.draw(VALUES[kind])


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value


@given(st.sampled_from(sorted(VIEWS)), st.binary(max_size=300))
def test_hostile_replies_only_raise_abi_error(name: str, reply: bytes) -> None:
    with contextlib.suppress(AbiError):
        decode(VIEWS[name].gives, reply)


def word(value: int) -> bytes:
    return value.to_bytes(32, "big")


def test_a_reply_that_unfolds_without_end_is_stopped() -> None:
    count = 2_000
    tail = word(100_000) + b"x" * 100_000
    strings = word(count) + word(32 * count) * count + tail
    with pytest.raises(AbiError, match="unfolds to too much"):
        decode(("string[]",), word(32) + strings)


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("uint256", b""),
        ("address", word(1 << 160)),
        ("bool", word(2)),
        ("uint64", word(1 << 64)),
        ("string", word(2**255)),
        ("string", word(32) + word(2**64)),
        ("uint256[]", word(32) + word(1 << 40)),
        ("bytes4", word(1)),
    ],
)
def test_replies_that_are_not_their_types(kind: str, reply: bytes) -> None:
    with pytest.raises(AbiError):
        decode((kind,), reply)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("address", "0x12"),
        ("address", 1),
        ("uint64", 1 << 64),
        ("uint256", -1),
        ("uint256", True),
        ("bytes32", b"x"),
        ("bool", 1),
        ("string", b"x"),
        ("int8", 1),
    ],
)
def test_values_that_do_not_fit(kind: str, value: Any) -> None:
    with pytest.raises((AbiError, ValueError)):
        encode_call(AbiFunction("0x", (kind,)), (value,))


def test_reasons_of_a_revert() -> None:
    assert revert_reason("0x08c379a0" + oracle(["string"], ["name taken"]).hex()) == "name taken"
    assert revert_reason("0x4e487b71" + word(0x32).hex()) == "Panic(0x32)"
    assert revert_reason("0x4c806526") == "custom error 0x4c806526"
    assert revert_reason("0x08c379a0ff") == ""
    assert revert_reason("0x") == revert_reason("zz") == ""


def test_the_table_has_no_function_that_writes() -> None:
    writes = re.compile(
        r"^(set|register|release|clear|admin|transfer|withdraw|diamondCut|approve|claim|deposit|submit|redeem|open)"
    )
    assert [name for name in VIEWS if writes.match(name) and name not in ("registrationCost",)] == []
