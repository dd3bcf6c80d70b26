"""Wasm entry, names, gas, hints, text: decisions without I/O."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.chain.gas import limit, publish_limit, ran_out
from sandbox.chain.names import is_name, require_own
from sandbox.errors import Deadline, DeadlinePassed, hint
from sandbox.judging import wasm
from sandbox.judging.wasm import MAGIC, entry
from sandbox.spec import Context, Mistake
from sandbox.text import clean, decode, mask


def export(*names: tuple[str, int]) -> bytes:
    body = bytes([len(names)]) + b"".join(
        bytes([len(n)]) + n.encode() + bytes([kind, 0]) for n, kind in names
    )
    return MAGIC + b"\x07" + bytes([len(body)]) + body


@pytest.mark.parametrize(
    ("module", "found"),
    [
        (b"", ""),
        (b"\0asm", ""),
        (b"\0asm\x01\0\0\0\x07\xff", ""),
        (export(("frame", 0)), "frame"),
        (export(("render", 0)), "render"),
        (export(("render", 0), ("frame", 0)), "frame"),
        (export(("frame", 3)), ""),  # a global of that name is no entry
        (export(("Frame", 0), ("framed", 0)), ""),
        (MAGIC + b"\x00\x03abc" + export(("frame", 0))[8:], "frame"),
        (export(("frame", 0))[:-1], ""),
        (b"\0asm\x02\0\0\0" + export(("frame", 0))[8:], ""),
        (MAGIC + b"\x07\x80\x80\x80\x80\x80\x80", ""),
    ],
)
def test_entry(module: bytes, found: str) -> None:
    assert entry(module) == found


@given(st.binary(max_size=64) | st.binary(max_size=64).map(lambda tail: MAGIC + b"\x07" + tail))
def test_entry_never_raises(module: bytes) -> None:
    assert entry(module) in ("", *wasm.ENTRIES)


@given(st.lists(st.text(max_size=20), max_size=5), st.integers(0, 200))
def test_entry_of_a_cut_module_never_invents_one(names: list[str], keep: int) -> None:
    usable = [(name, 0) for name in names if len(name.encode()) == len(name)]
    module = export(*usable)
    whole = entry(module)
    assert entry(module[:keep]) in ("", whole)


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a" * 63, "qa-1-2"])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", "a" * 64, "-a", "a-", "A", "a_b", "a.b", "../x", "ａ", "a\n", "é", "a b"]
)
def test_no_names(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize("name", ["qa-r1-1", "qa-r1-0", "qa-r1-999"])
def test_own_names(name: str) -> None:
    require_own(name, Context(run="r1", prefix="qa-r1-"), "/args/name")


@pytest.mark.parametrize(
    "name",
    [
        "claude",
        "qa-otherrun-1",
        "qa-r1",
        "qa-r1-",
        "qa-r1-x",
        "qa-r1-1-2",
        "qa-r1-01",
        "qa-r1-１",
        "qa-r1-1\n",
        "QA-R1-1",
    ],
)
def test_names_of_others(name: str) -> None:
    with pytest.raises(Mistake, match=r"^/args/name: "):
        require_own(name, Context(run="r1", prefix="qa-r1-"), "/args/name")


def test_without_a_prefix_no_name_is_own() -> None:
    with pytest.raises(Mistake):
        require_own("1", Context(run="r1", prefix=""), "/args/name")


@pytest.mark.parametrize(
    ("status", "text", "word"),
    [
        (402, "", "funding"),
        (401, "", "auth"),
        (403, "", "auth"),
        (429, "", "rate"),
        (500, "tx 0xab402cd failed for 402 reasons", ""),
        (200, "credit", ""),
        (0, "HTTP 402 Payment Required", "funding"),
        (0, "proxy: no session for 0xabc", "funding"),
        (0, "insufficient credit", "funding"),
        (0, "401 Unauthorized", "auth"),
        (0, "bad signature", "auth"),
        (0, "403 Forbidden", "auth"),
        (0, "429 Too Many Requests", "rate"),
        (0, "connection reset by peer", ""),
        (0, "tx 0x12402ab reverted", ""),
        (0, "hash deadbeef402deadbeef4020 unknown", ""),
        (0, "port 4020", ""),
    ],
)
def test_hints(status: int, text: str, word: str) -> None:
    assert hint(status, text) == word


def test_gas_is_by_formula() -> None:
    ctx = Context(run="r", prefix="")
    assert publish_limit(ctx, 476) == 1_200_000 + 8_500 * 476
    assert publish_limit(Context(run="r", prefix="", gas={"publish_base": 5, "publish_per_byte": 2}), 3) == 11
    assert limit(ctx, "register_name") == 2_200_000


@pytest.mark.parametrize(("used", "out"), [(1_000, True), (985, True), (980, True), (979, False), (0, False)])
def test_out_of_gas_is_told_from_a_revert(used: int, out: bool) -> None:
    assert ran_out(used, 1_000) is out


def test_a_deadline_is_shared_and_ends() -> None:
    total = Deadline(10)
    assert total.within(0.5).left() <= 0.5
    assert total.within(99).left() <= 10
    with pytest.raises(DeadlinePassed):
        Deadline(0).left()


KEY = "0x" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f'const SPONSOR_KEY = "{KEY}"', ("private-key",)),
        (f'{{"feePayerKey":"{KEY}"}}', ("private-key",)),
        (f"privateKey: '{KEY[2:]}'", ("private-key",)),
        (f"private key is {KEY}", ("private-key",)),
        (f"PRIVATE_KEY={KEY}", ("private-key",)),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----", ("private-key",)),
        ("sk-ABCDEFGHIJKLMNOPQRST", ("api-key",)),
        ("key=AIzaSyA1234567890abcdefghijklmnopqrstu", ("api-key",)),
        ("Authorization: Bearer abcdefghijklmnop1234", ("bearer",)),
        (f"tx {KEY} mined", ()),
        (f"public key {KEY}", ()),
        (f"metadata key {KEY} of the face", ()),
        (f"sponsor paid in {KEY}", ()),
        ("a bearer of news", ()),
        ("sk-short", ()),
    ],
)
def test_secrets_are_named_and_masked(text: str, kinds: tuple[str, ...]) -> None:
    masked, found = mask(text)
    assert found == kinds
    assert (masked == text) is (not kinds)
    assert not kinds or "abab" not in masked


@given(st.text())
def test_masking_is_stable_and_cleaning_bounded(text: str) -> None:
    once, _ = mask(text)
    assert mask(once)[0] == once
    assert len(clean(text, 10)) <= 10
    assert clean(clean(text)) == clean(text)


@given(st.binary(), st.text(max_size=10))
def test_any_bytes_decode(raw: bytes, charset: str) -> None:
    decode(raw, charset).encode("utf-8", "surrogatepass")
