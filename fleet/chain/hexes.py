"""Reads the hex values of a node's answers; anything else is the node's fault, not ours."""

from __future__ import annotations

import re
from typing import Any

from fleet.errors import Unreachable

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")


def as_int(value: Any) -> int:
    """A quantity such as `0x1f`, at most 256 bits."""
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise Unreachable("invalid answer of the node: expected a number")
    return int(value, 16)


def as_bytes(value: Any) -> bytes:
    """Data such as `0x00ff`."""
    if isinstance(value, str) and value.startswith("0x"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            pass
    raise Unreachable("invalid answer of the node: expected bytes")


def as_dict(value: Any) -> dict[str, Any]:
    """An object, such as a block or a receipt."""
    if not isinstance(value, dict):
        raise Unreachable("invalid answer of the node: expected an object")
    return value
