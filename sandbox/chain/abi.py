"""A small coder for the fixed table of functions the tools use; bounded against hostile replies.

The standard library has no keccak, so selectors and metadata keys are constants; a test derives each again.
A type is its Solidity name; `T[]` is a list of T and `(T,U)` a tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

WORD = 32
MAX_DECODED = 4 << 20
"""Bytes that one reply may unfold to: offsets can point at the same tail repeatedly."""


class AbiError(ValueError):
    """A value does not fit its type, or a reply does not match its types."""


Value = int | bool | str | bytes | list["Value"] | tuple["Value", ...]
"""address: lower-case 0x hex text; bytes and bytesN: bytes; uintN: int."""


@dataclass(frozen=True, slots=True)
class AbiFunction:
    selector: str
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()


def encode_call(function: AbiFunction, args: tuple[Value, ...]) -> str:
    """Calldata as 0x hex; raises AbiError when an argument does not fit."""
    return function.selector + _encode_sequence(function.takes, args).hex()


def decode(types: tuple[str, ...], data: bytes) -> tuple[Value, ...]:
    """The values of a reply; raises AbiError on anything that is not exactly these types."""
    return tuple(_Reader(data).sequence(types, 0))


def revert_reason(data: str) -> str:
    """`Error(string)` and `Panic(uint256)` in words, other selectors as they are; "" for no data."""
    try:
        raw = bytes.fromhex(data.removeprefix("0x"))
        if raw[:4].hex() == "08c379a0":
            return str(decode(("string",), raw[4:])[0])[:200]
        if raw[:4].hex() == "4e487b71":
            return f"Panic(0x{int.from_bytes(raw[4:36], 'big'):02x})"
    except ValueError:
        return ""
    return f"custom error 0x{raw[:4].hex()}" if len(raw) >= 4 else ""


def _is_dynamic(kind: str) -> bool:
    return (
        kind in ("string", "bytes")
        or kind.endswith("[]")
        or (kind.startswith("(") and any(_is_dynamic(part) for part in _parts(kind)))
    )


def _parts(kind: str) -> tuple[str, ...]:
    """Members of `(a,b)`, a tuple or an array of tuples among them."""
    depth, found = 0, [""]
    for letter in kind[1:-1]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return tuple(found) if kind != "()" else ()


def _width(kind: str) -> int:
    """Bytes in the head of a sequence."""
    if kind.startswith("(") and not _is_dynamic(kind):
        return sum(map(_width, _parts(kind)))
    return WORD


def _encode_sequence(types: tuple[str, ...], args: tuple[Value, ...]) -> bytes:
    if len(types) != len(args):
        raise AbiError(f"takes {len(types)} arguments, got {len(args)}")
    head, tail = b"", b""
    width = sum(map(_width, types))
    for kind, value in zip(types, args, strict=True):
        encoded = _encode(kind, value)
        if _is_dynamic(kind):
            head += _uint(width + len(tail))
            tail += encoded
        else:
            head += encoded
    return head + tail


def _encode(kind: str, value: Value) -> bytes:  # noqa: C901  one branch for each kind of type
    if kind.endswith("[]") or kind.startswith("("):
        if not isinstance(value, list | tuple):
            raise AbiError(f"expected {kind}")
        if kind.endswith("[]"):
            return _uint(len(value)) + _encode_sequence((kind[:-2],) * len(value), tuple(value))
        return _encode_sequence(_parts(kind), tuple(value))
    if kind in ("string", "bytes"):
        raw = value.encode() if isinstance(value, str) else value
        if not isinstance(raw, bytes) or isinstance(value, str) is not (kind == "string"):
            raise AbiError(f"expected {kind}")
        return _uint(len(raw)) + raw + b"\0" * (-len(raw) % WORD)
    if kind == "address":
        return b"\0" * 12 + _address(value)
    if kind == "bool":
        if not isinstance(value, bool):
            raise AbiError("expected a bool")
        return _uint(int(value))
    if kind.startswith("uint"):
        bits = int(kind[4:])
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << bits:
            raise AbiError(f"expected a {kind}")
        return _uint(value)
    if kind.startswith("bytes"):
        if not isinstance(value, bytes) or len(value) != int(kind[5:]):
            raise AbiError(f"expected {kind}")
        return value.ljust(WORD, b"\0")
    raise AbiError(f"no encoder for {kind}")


def _uint(value: int) -> bytes:
    return value.to_bytes(WORD, "big")


def _address(value: Value) -> bytes:
    try:
        raw = bytes.fromhex(value.removeprefix("0x")) if isinstance(value, str) else b""
    except ValueError:
        raw = b""
    if len(raw) != 20:
        raise AbiError("expected an address: 0x and 40 hex digits")
    return raw


class _Reader:
    """Bounds-checked reads; `_budget` ends replies that unfold without end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._budget = MAX_DECODED

    def sequence(self, types: tuple[str, ...], base: int) -> list[Value]:
        values: list[Value] = []
        at = base
        for kind in types:
            if _is_dynamic(kind):
                values.append(self.value(kind, base + self._size(at)))
                at += WORD
            else:
                values.append(self.value(kind, at))
                at += _width(kind)
        return values

    def value(self, kind: str, at: int) -> Value:
        if kind.endswith("[]"):
            count = self._size(at)
            if count > len(self._data) // WORD:
                raise AbiError("an array longer than the reply")
            return self.sequence((kind[:-2],) * count, at + WORD)
        if kind.startswith("("):
            return tuple(self.sequence(_parts(kind), at))
        if kind in ("string", "bytes"):
            raw = self._take(at + WORD, self._size(at))
            # chains hold any bytes in a string: invalid UTF-8 becomes U+FFFD, never an error
            return raw if kind == "bytes" else raw.decode("utf-8", "replace")
        word = self._take(at, WORD)
        number = int.from_bytes(word, "big")
        if kind == "address":
            _fits(number >> 160 == 0, kind)
            return "0x" + word[12:].hex()
        if kind == "bool":
            _fits(number < 2, kind)
            return number == 1
        if kind.startswith("uint"):
            _fits(number >> int(kind[4:]) == 0, kind)
            return number
        size = int(kind.removeprefix("bytes"))
        _fits(not any(word[size:]), kind)
        return word[:size]

    def _size(self, at: int) -> int:
        size = int.from_bytes(self._take(at, WORD), "big")
        if size > len(self._data):
            raise AbiError("an offset or a length that leaves the reply")
        return size

    def _take(self, at: int, size: int) -> bytes:
        self._budget -= size
        if self._budget < 0:
            raise AbiError("a reply that unfolds to too much")
        if at + size > len(self._data):
            raise AbiError("a reply shorter than its types")
        return self._data[at : at + size]


def _fits(ok: bool, kind: str) -> None:
    if not ok:
        raise AbiError(f"a word that is not a {kind}")
