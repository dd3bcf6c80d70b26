"""A small ABI codec for flat types, and the reader of `feedbackRange`.

Own code because importing eth_abi costs 0.2-0.4 s and 20 MB (performance.md 5), which an idle daemon must
not pay, and because decoding with it is 40 times slower (mark B9). Every offset and length comes
from a stranger's node: each one is checked against the buffer before it is followed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from fleet.chain.digest import lower


class Malformed(ValueError):
    """Bytes that are not the ABI encoding they should be."""


class Entry(NamedTuple):
    """One log entry. `sender` is lower-case hex, `timestamp` Unix seconds, `text` hostile."""

    sender: str
    timestamp: int
    text: str


def flat(kinds: Sequence[str]) -> bool:
    """True when this codec knows every one of these types (no arrays, no tuples)."""
    return all(kind in ("address", "bool", "string", "bytes") or _sized(kind) for kind in kinds)


def encode(kinds: Sequence[str], values: Sequence[Any]) -> bytes:
    """Canonical encoding of flat arguments; ValueError or TypeError when a value does not fit its type."""
    if len(kinds) != len(values):
        raise ValueError(f"expected {len(kinds)} arguments, got {len(values)}")
    head, tail = bytearray(), bytearray()
    for kind, value in zip(kinds, values, strict=True):
        if kind in ("string", "bytes"):
            blob = value.encode("utf-8") if kind == "string" else bytes(value)
            head += (32 * len(kinds) + len(tail)).to_bytes(32, "big")
            tail += len(blob).to_bytes(32, "big") + blob + bytes(-len(blob) % 32)
        else:
            head += _word(kind, value)
    return bytes(head + tail)


def decode(kinds: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """Values of flat types; Malformed when bytes are missing, dirty, or point outside themselves."""
    return tuple(_value(kind, data, 32 * place) for place, kind in enumerate(kinds))


def decode_exact(kinds: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """Like `decode`, but only the one canonical encoding passes.

    The signer's policy reads arguments through this: a contract and a policy that read
    the same odd bytes in two ways would be a hole in the fence.
    """
    values = decode(kinds, data)
    if encode(kinds, values) != data:
        raise Malformed("arguments are not in canonical encoding")
    return values


def _sized(kind: str) -> int:
    for stem in ("uint", "bytes"):
        size = kind.removeprefix(stem)
        if size != kind and size.isdigit():
            return int(size)
    return 0


def _word(kind: str, value: Any) -> bytes:
    if kind == "address":
        return bytes(12) + bytes.fromhex(lower(value)[2:])
    if kind == "bool":
        return bytes(31) + bytes([bool(value)])
    size = _sized(kind)
    if kind.startswith("uint"):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << size:
            raise ValueError(f"not a {kind}")
        return value.to_bytes(32, "big")
    if not size or not isinstance(value, bytes) or len(value) != size:
        raise ValueError(f"not a {kind}")
    return value + bytes(32 - size)


def _uint(data: bytes, at: int) -> int:
    if at < 0 or at + 32 > len(data):
        raise Malformed("data ends early")
    return int.from_bytes(data[at : at + 32], "big")


def _value(kind: str, data: bytes, at: int) -> Any:
    word = _uint(data, at)
    if kind in ("string", "bytes"):
        size = _uint(data, word)
        if word + 32 + size > len(data):
            raise Malformed("text ends outside the data")
        blob = data[word + 32 : word + 32 + size]
        return blob if kind == "bytes" else _text(blob)
    if kind == "address":
        if word >> 160:
            raise Malformed("address with dirty upper bytes")
        return f"0x{word:040x}"
    if kind == "bool":
        if word > 1:
            raise Malformed("bool that is neither 0 nor 1")
        return word == 1
    size = _sized(kind)
    if kind.startswith("uint"):
        if word >> size:
            raise Malformed(f"value too large for {kind}")
        return word
    raw = data[at : at + 32]
    if any(raw[size:]):
        raise Malformed(f"dirty padding after {kind}")
    return raw[:size]


def _text(blob: bytes) -> str:
    try:
        return blob.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("text is not UTF-8") from None


def decode_feedback_range(data: bytes) -> list[Entry]:
    """Entries of one `feedbackRange` answer; Malformed on anything that is not three equal-length arrays.

    Text that is not UTF-8 keeps its place, with U+FFFD where it was broken: one
    stranger's entry must not hide the others. Texts may not overlap, so a small answer cannot
    unfold into a large one.
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
    # A length that is cut off reads as a smaller number, but then its end is outside the data anyway.
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
