"""Reads the hex values of a node's answers; anything else is the node's fault, not ours."""

from __future__ import annotations

import binascii
import re
from typing import Any

from fleet.errors import Unreachable

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")


def as_int(value: object) -> int:
    """A quantity such as `0x1f`, at most 256 bits."""
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise Unreachable("invalid answer of the node: expected a number")
    return int(value, 16)


def as_bytes(value: object) -> bytes:
    """Data such as `0x00ff`."""
    if isinstance(value, str) and value.startswith("0x"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            pass
    raise Unreachable("invalid answer of the node: expected bytes")


_RESULT = b'"result":"0x'
_REST = 1_024
"""Bytes of an answer around its data: a version, an id."""


def cut_out(raw: bytes) -> tuple[bytes, bytes | None]:
    """An answer in JSON with its result replaced by "0x", and that result as bytes.

    The answer itself and None unless it holds "result" once, without an escape or much else around it: then
    what is cut out is what a reader of the whole JSON would find under that name.
    """
    start = raw.find(_RESULT, 0, _REST) + len(_RESULT)
    end = raw.find(b'"', start)
    if start < len(_RESULT) or end < 0 or len(raw) - (end - start) > _REST:
        return raw, None
    rest = raw[:start] + raw[end:]
    if b"\\" in rest or rest.count(b'"result"') != 1:
        return raw, None
    try:
        return rest, binascii.unhexlify(memoryview(raw)[start:end])
    except binascii.Error:
        return raw, None


def as_dict(value: object) -> dict[str, Any]:
    """An object, such as a block or a receipt."""
    if not isinstance(value, dict):
        raise Unreachable("invalid answer of the node: expected an object")
    return value
