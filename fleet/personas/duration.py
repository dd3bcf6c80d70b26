"""Durations as people write them: a number and a unit."""

from __future__ import annotations

import re
from functools import lru_cache

MAX_WALL_S = 86_400
"""Longest deadline of a run or of a turn."""
FORM = "a number and s, m or h, such as 30s or 6h"
_FORM = re.compile(r"([1-9][0-9]{0,5})([smh])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600}


@lru_cache(256)
def parse_duration(text: str) -> float:
    """`30s`, `10m` or `6h` in seconds; ValueError for anything else, zero included."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write {FORM}")
    return float(int(match[1]) * _SECONDS[match[2]])
