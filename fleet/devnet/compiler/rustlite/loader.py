"""The platform's loader: the entry point of a module that may be anything at all.

Walks the sections of a WebAssembly binary (core specification 5.5) with every read checked against the end;
the imports are the interpreter's own, because a loader is run on many inputs.
"""

from __future__ import annotations

import os

MAGIC = b"\0asm\x01\0\0\0"
EXPORTS = 7
FUNCTION = 0
ENTRIES = (b"frame", b"render")
"""In order of preference."""
NONE = "no entry"


class MalformedModule(Exception):
    """The bytes end early, or a number is longer than its type."""


class ModuleReader:
    """Bounded reads over `data[at:end]`."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def u32(self) -> int:
        """An unsigned LEB128 number of at most 32 bits."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >= 1 << 32:
                    break
                return value
        raise MalformedModule

    def take(self, count: int) -> bytes:
        if count > self.end - self.at:
            raise MalformedModule
        self.at += count
        return self.data[self.at - count : self.at]


def entry(module: bytes, defects: frozenset[str]) -> str:
    """`frame`, `render` or `no entry`; malformed and truncated bytes have no entry."""
    if not module.startswith(MAGIC):
        return NONE
    found: set[bytes] = set()
    reader = ModuleReader(module, len(MAGIC), len(module))
    try:
        while reader.at < reader.end:
            found |= _section(reader, defects)
    except MalformedModule:
        return NONE
    return next((name.decode() for name in ENTRIES if name in found), NONE)


def _section(reader: ModuleReader, defects: frozenset[str]) -> set[bytes]:
    """The entry names that one section exports; `reader` moves past it."""
    kind = reader.take(1)[0]
    try:
        body = reader.take(reader.u32())
    except MalformedModule:
        if "loader-crash" in defects:  # seeded defect: maps the section before it looks at its length
            os.abort()
        raise
    return _exports(ModuleReader(body, 0, len(body))) if kind == EXPORTS else set()


def _exports(section: ModuleReader) -> set[bytes]:
    found: set[bytes] = set()
    for _ in range(section.u32()):
        name = section.take(section.u32())
        kind = section.take(1)[0]
        section.u32()
        if kind == FUNCTION and name in ENTRIES:
            found.add(name)
    if section.at != section.end:
        raise MalformedModule
    return found
