"""Whether a contract's ABI is well formed: the JSON that the Solidity specification describes.

https://docs.soliditylang.org/en/latest/abi-spec.html#json
"""

from __future__ import annotations

import re
from typing import Any

_TYPE = re.compile(
    r"(?:u?int(?:8|16|24|32|40|48|56|64|72|80|88|96|104|112|120|128|136|144|152|160|168|176|184|192|200|208"
    r"|216|224|232|240|248|256)|address|bool|bytes(?:[1-9]|[12]\d|3[0-2])?|string|function|tuple"
    r"|u?fixed(?:168x10|128x18|128x10))(?:\[\d{0,78}\])*"
)
_KINDS = frozenset(("function", "constructor", "receive", "fallback", "event", "error"))
MAX_DEPTH = 24


def malformed(abi: object) -> str:
    """What is wrong with a parsed ABI, in words without its names; "" when it is well formed."""
    if not isinstance(abi, list):
        return "the ABI is not a list"
    known: set[tuple[str, str, str]] = set()
    for entry in abi:
        if not isinstance(entry, dict) or entry.get("type", "function") not in _KINDS:
            return "an entry of the ABI is of no known kind"
        kind = entry.get("type", "function")
        for part in ("inputs", "outputs"):
            for one in entry.get(part, ()):
                if why := _parameter(one, 0):
                    return why
        if kind in ("function", "event", "error") and not isinstance(entry.get("name"), str):
            return "an entry of the ABI has no name"
        if kind == "function":
            key = (kind, entry["name"], ",".join(_spelled(one) for one in entry.get("inputs", ())))
            if key in known:
                return "two functions of the ABI have one signature"
            known.add(key)
    return ""


def _parameter(one: Any, depth: int) -> str:
    if not isinstance(one, dict) or depth > MAX_DEPTH:
        return "a parameter of the ABI is not an object"
    kind = one.get("type")
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        return "a parameter of the ABI has a type that does not exist"
    if kind.startswith("tuple"):
        parts = one.get("components")
        if not isinstance(parts, list):
            return "a tuple of the ABI has no components"
        return next(filter(None, (_parameter(part, depth + 1) for part in parts)), "")
    return ""


def _spelled(one: dict[str, Any]) -> str:
    """The type in a signature."""
    kind = str(one.get("type"))
    if kind.startswith("tuple"):
        return f"({','.join(_spelled(part) for part in one.get('components', ()))}){kind[5:]}"
    return kind
