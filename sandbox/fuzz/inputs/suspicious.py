"""Suspicious programs by family of language: what breaks compilers, written by hand and kept as data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("suspicious")
GENERIC = "generic"
_BREAK = "\n=====\n"
"""A line of five equals signs stands between two programs."""


@cache
def programs(family: str) -> tuple[bytes, ...]:
    """The list of one family; the generic one for a family that has no list."""
    file = FOLDER / f"{family}.txt"
    if not file.is_file():
        file = FOLDER / f"{GENERIC}.txt"
    return tuple(one.strip("\n").encode() for one in file.read_text("utf-8").split(_BREAK))


@cache
def modules() -> tuple[bytes, ...]:
    """Small valid WebAssembly modules."""
    lines = (FOLDER / "modules.txt").read_text("ascii").splitlines()
    return tuple(bytes.fromhex(line) for line in lines if line and not line.startswith("#"))
