"""The tables against the hash they claim to be, and the codec against eth_abi."""

from __future__ import annotations

import contextlib
from typing import Any, cast

import pytest
from eth_abi.abi import encode as eth_encode
from hypothesis import given
from hypothesis import strategies as st
from web3.utils import (
    abi_to_signature,
    event_abi_to_log_topic,
    function_abi_to_4byte_selector,
    get_abi_input_types,
    get_abi_output_types,
)

from fleet.chain.node import abi, codec
from fleet.chain.node.codec import Entry, Malformed, decode_feedback_range
from fleet.chain.node.digest import keccak256
from sandbox.chain import contract

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "address": st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()),
    "uint256": st.integers(0, 2**256 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "bool": st.booleans(),
    "bytes32": st.binary(min_size=32, max_size=32),
    "bytes4": st.binary(min_size=4, max_size=4),
    "string": st.text(max_size=80),
    "bytes": st.binary(max_size=80),
}
CALLS = st.lists(st.sampled_from(sorted(VALUES)), max_size=5).flatmap(
    lambda kinds: st.tuples(st.just(kinds), st.tuples(*(VALUES[kind] for kind in kinds)))
)
ENTRIES = st.lists(
    st.tuples(VALUES["address"], VALUES["uint64"], st.text(max_size=60)).map(lambda row: Entry(*row)),
    max_size=8,
)


@pytest.mark.parametrize("function", abi.TABLE, ids=lambda function: function.name)
def test_selector_is_the_hash_of_the_signature(function: abi.Function) -> None:
    inputs = ",".join(function.inputs)
    signature = f"{function.name}({inputs})"
    assert function.selector == keccak256(signature.encode())[:4]
    assert function.signature == signature


def test_names_and_selectors_are_unique() -> None:
    assert len(abi.FUNCTIONS) == len(abi.BY_SELECTOR) == len(abi.TABLE)


@pytest.mark.parametrize("selector", abi.ERRORS)
def test_error_selector_is_the_hash_of_the_signature(selector: bytes) -> None:
    name, inputs = abi.ERRORS[selector]
    assert selector == keccak256(f"{name}({','.join(inputs)})".encode())[:4]


def test_topics_are_the_hash_of_the_event() -> None:
    for topic, event in (
        (abi.REGISTERED, "Registered(uint256,address,string)"),
        (abi.FEEDBACK_SUBMITTED, "FeedbackSubmitted(address,uint256,string)"),
        (abi.FEEDBACK_CLEARED, "FeedbackCleared(uint256)"),
    ):
        assert topic == "0x" + keccak256(event.encode()).hex()


def test_web3_reads_the_abi_as_we_do() -> None:
    for entry in abi.ABI:
        signature = abi_to_signature(cast(Any, entry))
        assert signature == abi.signature(entry)
        if entry["type"] == "function":
            function = abi.FUNCTIONS[entry["name"]]
            assert function.selector == function_abi_to_4byte_selector(cast(Any, entry))
            assert (list(function.inputs), list(function.outputs)) == (
                get_abi_input_types(cast(Any, entry)),
                get_abi_output_types(cast(Any, entry)),
            )
        if entry["type"] == "event":
            assert abi.TOPICS[entry["name"]] == "0x" + event_abi_to_log_topic(cast(Any, entry)).hex()


def test_selectors_and_topics_are_the_published_ones() -> None:
    """platform-facts 1.3, some of each kind, written out."""
    selectors = {name: function.selector.hex() for name, function in abi.FUNCTIONS.items()}
    assert selectors["submitFeedback"] == "e341a623"
    assert selectors["register"] == "f2c298be"
    assert selectors["diamondCut"] == "1f931c1c"
    assert selectors["facets"] == "7a0ed627"
    assert abi.ERRORS[bytes.fromhex("7f19f48d")] == ("InvalidName", ("string",))
    assert abi.REGISTERED == "0xc118700a4fa70d79a8f1df06b1d2ff9aeaf09bdc4c528a45ddd5182856864594"
    assert abi.FEEDBACK_SUBMITTED == "0xc7e666f164da054d2ca2bd712fb261158473066d414c8cfc33a1b9c7df775fe7"
    assert abi.FEEDBACK_CLEARED == "0xd152b1cd3646070da50e66ed2a625bd222cc2516cd14779b3fb4c1a9aef9d091"
    assert abi.TOPICS["MetadataSet"] == "0x38671a025122228b2316fd2a2a03ca9a3aad2820f6a4b0b7ec17f3ce4bb7c123"
    assert abi.TOPICS["NameReleased"] == "0xb2232cfcdfe9248c8e15965f3a14bb0e2fa87da5ae3a188e2361f31b26f7ddc1"


TOOLS = {**contract.VIEWS, **contract.WRITES, "approve": contract.APPROVE}


@pytest.mark.parametrize("name", TOOLS)
def test_the_tools_table_says_what_the_one_abi_says(name: str) -> None:
    """A jail has neither web3 nor keccak; what it knows is checked here instead."""
    theirs, ours = TOOLS[name], abi.FUNCTIONS[name]
    assert theirs.selector == f"0x{ours.selector.hex()}"
    assert theirs.takes == ours.inputs
    if theirs.gives or name in contract.VIEWS:
        assert theirs.gives == ours.outputs
    assert ours.writes is (name not in contract.VIEWS)


def test_the_tools_table_has_every_view() -> None:
    assert set(contract.VIEWS) == {function.name for function in abi.TABLE if not function.writes}


@given(CALLS)
def test_codec_agrees_with_eth_abi(call: tuple[list[str], tuple[Any, ...]]) -> None:
    kinds, values = call
    data = codec.encode(kinds, values)
    assert data == eth_encode(kinds, values)
    assert codec.decode(kinds, data) == codec.decode_exact(kinds, data) == values


@given(CALLS, st.data())
def test_damaged_bytes_never_raise_anything_else(
    call: tuple[list[str], tuple[Any, ...]], data: st.DataObject
) -> None:
    kinds, values = call
    good = bytearray(codec.encode(kinds, values))
    if good:
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(good[: data.draw(st.integers(0, len(good)))])
    for raw in (bytes(good), cut):
        with contextlib.suppress(Malformed):
            codec.decode(kinds, raw)


@pytest.mark.parametrize(
    ("kinds", "hexes"),
    [
        (["string"], "20" + "00" * 0),
        (["string"], f"{64:064x}{0:064x}{1:064x}61{'00' * 31}"),  # valid offset, but not the canonical one
        (["uint256"], f"{1:064x}00"),  # one byte too many
        (["string"], f"{32:064x}{1:064x}61{'00' * 30}01"),  # dirty padding
    ],
)
def test_only_the_canonical_encoding_is_exact(kinds: list[str], hexes: str) -> None:
    with pytest.raises(Malformed):
        codec.decode_exact(kinds, bytes.fromhex(hexes))


@pytest.mark.parametrize(
    ("kinds", "value"),
    [("uint8", 256), ("uint256", -1), ("uint256", True), ("bytes4", b"12345"), ("address", "0x12")],
)
def test_values_that_do_not_fit_are_errors(kinds: str, value: object) -> None:
    with pytest.raises(ValueError, match="not a"):
        codec.encode([kinds], [value])


def ranged(entries: list[Entry]) -> bytes:
    columns = [list(column) for column in zip(*entries, strict=True)] or [[], [], []]
    return eth_encode(["address[]", "uint64[]", "string[]"], columns)


@given(ENTRIES)
def test_feedback_range_agrees_with_eth_abi(entries: list[Entry]) -> None:
    assert decode_feedback_range(ranged(entries)) == entries


@given(ENTRIES, st.data())
def test_hostile_feedback_range_is_malformed_or_small(entries: list[Entry], data: st.DataObject) -> None:
    raw = bytearray(ranged(entries))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) // 32 - 1)) * 32
        raw[place : place + 32] = data.draw(VALUES["uint256"] | st.integers(0, len(raw))).to_bytes(32, "big")
    try:
        found = decode_feedback_range(bytes(raw))
    except Malformed:
        return
    assert sum(len(entry.text) for entry in found) <= len(raw)


def test_overlapping_texts_cannot_unfold() -> None:
    """A thousand offsets to one long text: 1 MB on the wire must not become 1 GB in memory."""
    count, text = 1000, b"A" * 1_000_000
    head = [96, 96 + 32 * (count + 1), 96 + 64 * (count + 1)]
    words = [*head, count, *[1] * count, count, *[1] * count, count, *[32 * count] * count, len(text)]
    raw = b"".join(word.to_bytes(32, "big") for word in words) + text
    with pytest.raises(Malformed):
        decode_feedback_range(raw)


def test_entry_that_is_not_utf8_does_not_hide_the_others() -> None:
    entries = [Entry("0x" + "11" * 20, 5, "XXXX"), Entry("0x" + "22" * 20, 6, "good")]
    raw = ranged(entries).replace(b"XXXX", b"\xff\xfeab")
    assert [entry.text for entry in decode_feedback_range(raw)] == ["��ab", "good"]


@pytest.mark.parametrize("raw", [b"", b"\0" * 32, b"\xff" * 96, b"\0" * 95])
def test_short_answers_are_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        decode_feedback_range(raw)


def test_range_answers_with_dirty_upper_bytes_are_malformed() -> None:
    raw = bytearray(ranged([Entry("0x" + "11" * 20, 5, "text")]))
    raw[4 * 32] = 1  # first byte of the sender's word
    with pytest.raises(Malformed, match="dirty"):
        decode_feedback_range(bytes(raw))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", ""),
        (bytes.fromhex("4c806526"), "EmptyFeedback()"),
        (bytes.fromhex("4e487b71") + (0x11).to_bytes(32, "big"), "Panic(0x11)"),
        (bytes.fromhex("7f19f48d") + codec.encode(["string"], ["A_b"]), "InvalidName(A_b)"),
        (bytes.fromhex("08c379a0") + codec.encode(["string"], ["name taken"]), "name taken"),
        (bytes.fromhex("08c379a0") + b"\xff" * 8, "Error"),
        (bytes.fromhex("deadbeef"), "unknown error 0xdeadbeef()"),
    ],
)
def test_reverts_are_described(raw: bytes, said: str) -> None:
    assert abi.describe_revert(raw) == said


def test_facets_are_decoded_and_damage_is_malformed() -> None:
    function = abi.FUNCTIONS["facets"]
    value = [("0x" + "11" * 20, [b"abcd"])]
    raw = eth_encode(["(address,bytes4[])[]"], [value])
    assert function.decode(raw) == (((value[0][0], (b"abcd",)),),)
    with pytest.raises(Malformed):
        function.decode(raw[:-40])


@pytest.mark.parametrize("kind", ["(address,bytes4[])[]", "string[]"])
def test_an_answer_cannot_unfold_into_more_than_it_weighs(kind: str) -> None:
    """A thousand offsets to one long tail."""
    count, size = 1000, 10_000
    tail = [0, 64, size, *[0] * size] if kind.startswith("(") else [32 * size, *[0] * size]
    words = [32, count, *[32 * count] * count, *tail]
    with pytest.raises(Malformed, match="unfolds to too much"):
        codec.decode([kind], b"".join(word.to_bytes(32, "big") for word in words))


@given(st.lists(st.tuples(VALUES["address"], st.lists(VALUES["bytes4"], max_size=6)), max_size=6))
def test_honest_answers_are_never_too_much(facets: list[tuple[str, list[bytes]]]) -> None:
    function = abi.FUNCTIONS["facets"]
    raw = eth_encode(["(address,bytes4[])[]"], [facets])
    assert function.decode(raw) == (tuple((address, tuple(found)) for address, found in facets),)
