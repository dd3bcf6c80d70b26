"""JSON that a stranger wrote: one reader for both sides of the fence.

Standard library only. `json.loads` takes more than JSON (NaN), and turns valid JSON into values that break
code that counts, compares or rewrites them: 1e999 becomes infinite, an integer may have 4,300 digits.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

MAX_DIGITS = 78
"""Digits of an integer: those of 2**256 - 1, the largest number that a chain can mean."""
MAX_FLOAT = 1_100
"""Characters of any other number: the longest that a writer of exact doubles needs are below it."""
MAX_FRAMES = 3_000
"""Python's recursion limit at most. A library that computes pairings (py_ecc, which eth-account and web3
import) raises it to 100,000 for the whole process: 100 kB of `[` then end a CPython 3.11 by SIGSEGV."""

Pairs = Callable[[list[tuple[str, Any]]], Any]


def loads(text: str | bytes, *, values: int = 0, pairs: Pairs | None = None) -> Any:  # noqa: ANN401  any JSON
    """One document; ValueError for what is not JSON, and for a number that is not finite or too long.

    Args:
        text: bytes are UTF-8, with or without a byte order mark.
        values: the most members that its objects and arrays may have together; 0 for any number.
        pairs: makes an object of its members, in their order and with repeated keys.
    """
    try:
        if sys.getrecursionlimit() > MAX_FRAMES:
            sys.setrecursionlimit(MAX_FRAMES)
        found = json.loads(
            text if isinstance(text, str) else text.decode("utf-8-sig"),
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_constant,
            object_pairs_hook=pairs,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if values and _holds_more(found, values):
        raise ValueError(f"more than {values} values")
    return found


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"an integer of more than {MAX_DIGITS} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits) if len(digits) <= MAX_FLOAT else math.inf
    if not math.isfinite(number):
        raise ValueError("a number that is not finite, or too long")
    return number


def _constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _holds_more(found: Any, most: int) -> bool:  # noqa: ANN401  any JSON
    """Counts without recursion, and stops at the first member too many."""
    count, unseen = 0, [found]
    while unseen:
        one = unseen.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        count += len(inner)
        if count > most:
            return True
        unseen.extend(inner)
    return False
