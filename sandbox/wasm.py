"""The one thing read out of a module by hand: does it export a function named `frame` or `render`?"""

from __future__ import annotations

MAGIC = b"\0asm\x01\0\0\0"
ENTRIES = ("frame", "render")
_EXPORTS = 7
_FUNCTION = 0


def entry(module: bytes) -> str:
    """The name of the entry point, `frame` before `render`; "" when there is none.

    Never raises: malformed and truncated modules are ordinary input (platform-facts 1.10).
    """
    try:
        found = set(_function_exports(module))
    except (IndexError, ValueError):
        return ""
    return next((name for name in ENTRIES if name in found), "")


def _function_exports(module: bytes) -> list[str]:
    if module[:8] != MAGIC:
        return []
    at, names = 8, []
    while at < len(module):
        section = module[at]
        size, at = _leb(module, at + 1)
        if at + size > len(module):
            raise ValueError("section leaves the module")
        if section == _EXPORTS:
            names += _exports(module[at : at + size])
        at += size
    return names


def _exports(body: bytes) -> list[str]:
    count, at = _leb(body, 0)
    names = []
    for _ in range(count):
        length, at = _leb(body, at)
        raw = body[at : at + length]
        at += length
        kind = body[at]
        _, at = _leb(body, at + 1)
        if kind == _FUNCTION:
            names.append(raw.decode("utf-8", "replace"))
    return names


def _leb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned 32-bit LEB128 and the place after it."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
    raise ValueError("number too long")
