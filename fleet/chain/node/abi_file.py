"""The functions of a contract by its own ABI: a JSON file of the operator's, as compilers write it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleet.chain.node.abi import Function, function_of
from fleet.config import read_text
from fleet.errors import ConfigError

LARGEST = 4 << 20
"""Bytes of the file: an artifact of a compiler has the bytecode too."""
MOST = 512
"""Functions that are read."""
_REMEDY = 'name a JSON array of an ABI, or an object with one under "abi"'


def read_functions(path: Path) -> Mapping[str, Function]:
    """By selector, `0x` and 8 digits; ConfigError for a file that is no ABI or names no function."""
    try:
        document = json.loads(read_text(path, limit=LARGEST))
        entries: list[dict[str, Any]] = document["abi"] if isinstance(document, dict) else document
        found = [function_of(one) for one in entries if one.get("type", "function") == "function"]
        found = [one for one in found if one.signature.isascii() and len(one.signature) <= 500]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ConfigError(f"{path}: not an ABI in JSON", remedy=_REMEDY) from None
    if not found:
        raise ConfigError(f"{path}: an ABI without a function", remedy=_REMEDY)
    return {f"0x{one.selector.hex()}": one for one in found[:MOST]}
