"""A WebAssembly binary as its sections, and numbers as LEB128 (core specification 5.2 and 5.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

MAGIC = b"\0asm\x01\0\0\0"


@dataclass(frozen=True, slots=True)
class WasmSection:
    """`length` is the number as it was written, which need not be the shortest form."""

    kind: int
    length: bytes
    body: bytes

    def of(self, body: bytes) -> WasmSection:
        return replace(self, length=leb(len(body)), body=body)

    @property
    def raw(self) -> bytes:
        return bytes([self.kind]) + self.length + self.body


@dataclass(frozen=True, slots=True)
class BinaryModule:
    """`rest` is what follows the last whole section: nothing in a module that is well-formed."""

    sections: tuple[WasmSection, ...]
    rest: bytes = b""

    @property
    def raw(self) -> bytes:
        return MAGIC + b"".join([one.raw for one in self.sections]) + self.rest


def parse(data: bytes) -> BinaryModule | None:
    """The sections; None when the bytes do not begin as a module does. `parse(data).raw == data` always."""
    if not data.startswith(MAGIC):
        return None
    at, found = len(MAGIC), []
    while at < len(data):
        number = read(data, at + 1)
        if number is None or number[1] + number[0] > len(data):
            break
        size, start = number
        found.append(WasmSection(data[at], data[at + 1 : start], data[start : start + size]))
        at = start + size
    return BinaryModule(tuple(found), data[at:])


def read(data: bytes, at: int) -> tuple[int, int] | None:
    """An unsigned number of at most 64 bits and the place after it; None when it does not end."""
    value = 0
    for index in range(at, min(at + 10, len(data))):
        value |= (data[index] & 0x7F) << 7 * (index - at)
        if data[index] < 0x80:
            return value, index + 1
    return None


def leb(value: int, width: int = 0) -> bytes:
    """An unsigned number, in `width` bytes at least: then it is overlong."""
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    while len(made) < width:
        made[-1] |= 0x80
        made.append(0)
    return bytes(made)
