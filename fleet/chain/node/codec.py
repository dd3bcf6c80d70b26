"""Values and bytes of the ABI, by web3's codec, and the bulk reader of `feedbackRange`.

Every offset and length comes from an untrusted node, so the input of web3's codec is metered: an answer
cannot expand far beyond its own size. The bulk reader is our own because it is the mirror's hot path: it must
decode at least 10 times as fast as eth_abi (mark B9), and a test holds it equal to eth_abi.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fleet.chain.node.digest import lower
from fleet.chain.node.recursion_limit import recursion_limit_kept

if TYPE_CHECKING:
    from eth_abi.codec import ABICodec


class Malformed(ValueError):
    """Bytes that are not the expected ABI encoding."""


class Entry(NamedTuple):
    """One log entry. `sender` is lower-case hex, `timestamp` Unix seconds, `text` hostile."""

    sender: str
    timestamp: int
    text: str


def encode(kinds: Sequence[str], values: Sequence[Any]) -> bytes:
    """Canonical encoding of arguments; ValueError when one does not fit its type."""
    if len(kinds) != len(values):
        raise ValueError(f"expected {len(kinds)} arguments, got {len(values)}")
    plain = [lower(one) if kind == "address" else one for kind, one in zip(kinds, values, strict=True)]
    try:
        return _codec().encode(kinds, plain)
    except Exception as error:  # eth_abi has its own exceptions; an encoder may also raise TypeError
        raise ValueError(f"not a {', '.join(kinds)}: {error}") from None


def decode(kinds: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """Values of these types; Malformed when bytes are missing, dirty, or point outside themselves.

    Addresses are lower-case. The padding of a text is not checked, as in Solidity.
    """
    try:
        return _codec().decode(kinds, data, strict=False)
    except Exception as error:  # eth_abi's own exceptions, OverflowError and UnicodeDecodeError
        raise Malformed(f"{', '.join(kinds)}: {str(error)[:200] or type(error).__name__}") from None


def decode_exact(kinds: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """Like `decode`, but accept only the canonical encoding.

    The signer's policy reads arguments through this: a contract that read the same bytes differently would
    be a hole in the fence.
    """
    values = decode(kinds, data)
    if encode(kinds, values) != data:
        raise Malformed("arguments are not in canonical encoding")
    return values


@cache
def _codec() -> ABICodec:
    # web3 takes 0.7 s to import: commands that encode nothing must not pay for it
    with recursion_limit_kept():
        from fleet.chain.node.provider import metered_codec

    return metered_codec()


def _uint(data: bytes, at: int) -> int:
    if at < 0 or at + 32 > len(data):
        raise Malformed("data ends early")
    return int.from_bytes(data[at : at + 32], "big")


def decode_feedback_range(data: bytes) -> list[Entry]:
    """Entries of one `feedbackRange` answer; Malformed on anything but three arrays of equal length.

    Invalid UTF-8 is decoded with U+FFFD: one stranger's entry must not hide the others. Texts may not
    overlap, so a small answer cannot expand into a large one.
    """
    senders_at, times_at, texts_at = (_uint(data, at) for at in (0, 32, 64))
    count = _uint(data, senders_at)
    if count != _uint(data, times_at) or count != _uint(data, texts_at):
        raise Malformed("the three arrays differ in length")
    if count * 96 > len(data):
        raise Malformed("more entries than bytes")
    block = 32 * count
    senders = _block(data, senders_at + 32, block)
    times = _block(data, times_at + 32, block)
    base = texts_at + 32
    offsets = _block(data, base, block)
    _demand_zero(senders, count, 96)
    _demand_zero(times, count, 192)
    _demand_zero(offsets, count, 192)
    low = ">" + "24xQ" * count
    texts = _texts(data[base:], struct.unpack(low, offsets))
    names = map("0x".__add__, map(bytes.hex, struct.unpack(">" + "12x20s" * count, senders)))
    rows = zip(names, struct.unpack(low, times), texts, strict=True)
    return list(map(_ENTRY, rows))


_ENTRY: Callable[[tuple[str, int, str]], Entry] = partial(tuple.__new__, Entry)
"""Entry(*row) without a Python frame for each: a third of the decoder's time."""


def _texts(data: bytes, offsets: tuple[int, ...]) -> list[str]:
    # A truncated length reads as a smaller number, but its end is then outside the data anyway.
    ends = [at + 32 + int.from_bytes(data[at : at + 32], "big") for at in offsets]
    if ends and (max(ends) > len(data) or sum(ends) - sum(offsets) > len(data)):
        raise Malformed("text outside the data, or over another one")
    spans = zip(offsets, ends, strict=True)
    try:
        return [data[at + 32 : end].decode() for at, end in spans]
    except UnicodeDecodeError:
        return [data[at + 32 : end].decode("utf-8", "replace") for at, end in zip(offsets, ends, strict=True)]


def _block(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise Malformed("array ends outside the data")
    return data[at : at + size]


def _demand_zero(block: bytes, count: int, bits: int) -> None:
    mask = _usual_mask(count, bits) if count <= 1024 else _mask(count, bits)
    if int.from_bytes(block, "big") & mask:
        raise Malformed("dirty upper bytes")


@lru_cache(maxsize=16)
def _usual_mask(count: int, bits: int) -> int:
    return _mask(count, bits)


def _mask(count: int, bits: int) -> int:
    """The upper `bits` of each of `count` words set: one AND checks a whole array."""
    return int.from_bytes((b"\xff" * (bits // 8) + bytes(32 - bits // 8)) * count, "big")
