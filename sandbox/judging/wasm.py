"""What is read out of a module by hand: its sections, and the functions that it exports."""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = b"\0asm\x01\0\0\0"
ENTRIES = ("frame", "render")
CODE = 10
_EXPORTS = 7
_FUNCTION = 0


def entry(module: bytes) -> str:
    """The name of the entry point, `frame` before `render`; "" when there is none.

    Never raises: malformed and truncated modules are ordinary input (platform-facts 1.10).
    """
    found = exports(module)
    return next((name for name in ENTRIES if name in found), "")


def exports(module: bytes) -> frozenset[str]:
    """Names of the functions that a module exports; none of a malformed one. Never raises."""
    try:
        return frozenset(
            name for section, body in _sections(module) if section == _EXPORTS for name in _exports(body)
        )
    except (IndexError, ValueError):
        return frozenset()


def sections(module: bytes) -> list[tuple[int, bytes]]:
    """Number and body of each section; none of a malformed module. Never raises."""
    try:
        return list(_sections(module))
    except (IndexError, ValueError):
        return []


def _sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    if module[:8] != MAGIC:
        return
    at = 8
    while at < len(module):
        section = module[at]
        size, at = leb(module, at + 1)
        if at + size > len(module):
            raise ValueError("section leaves the module")
        yield section, module[at : at + size]
        at += size


def _exports(body: bytes) -> list[str]:
    count, at = leb(body, 0)
    names = []
    for _ in range(count):
        length, at = leb(body, at)
        raw = body[at : at + length]
        at += length
        kind = body[at]
        _, at = leb(body, at + 1)
        if kind == _FUNCTION:
            names.append(raw.decode("utf-8", "replace"))
    return names


def leb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned 32-bit LEB128 and the place after it."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
    raise ValueError("number too long")
