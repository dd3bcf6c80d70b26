"""What a contract's code says of its functions: types of arguments, mutability, the variables they read.

The analysis is native code on hostile bytes, so it runs in a process of its own in the jail, with limits; if
it fails, the functions are unknown, and the call goes on. Types are as the code uses them: `bytes32` often
reads as `uint256`, and a `string` as `bytes`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import strict_json
from sandbox.errors import Failure
from sandbox.programs import process

WALL_S, CPU_S = 5.0, 3.0
"""Limits of the analysis of a contract; 24 KiB of code take 5 to 30 ms."""
MAX_CODE = 48 << 10
"""Bytes of one code; a longer one is not analysed (twice EIP-170)."""
MAX_ALL = 1 << 20
"""Bytes of all codes of one analysis."""
MAX_READS = 16
MAX_DESCRIBED = 1_024
"""Functions of all codes together that are described: an answer has to fit into a jail's output."""
MUTABILITIES = ("pure", "view", "payable", "nonpayable")
_CHILD = Path(__file__).with_name("evm_types_child.py")
_SELECTOR = re.compile(r"[0-9a-f]{8}", re.ASCII)
_ARGUMENTS = re.compile(r"[a-z0-9,()\[\]]{0,400}", re.ASCII)
_VARIABLE = re.compile(r"[0-9a-f]{1,64}:\d{1,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CodeFunction:
    """A function by its code. `reads`: the variables that it reads, `slot:offset`."""

    arguments: str
    mutability: str
    reads: tuple[str, ...] = ()


def analysed(codes: Sequence[bytes]) -> list[dict[str, CodeFunction]]:
    """The functions of each code by selector (with 0x); an empty one where nothing is known."""
    library = importlib.util.find_spec("evmole")
    if library is None or library.origin is None:
        return [{} for _ in codes]
    room, given = MAX_ALL, []
    for code in codes:
        kept = code if len(code) <= min(MAX_CODE, room) else b""
        room -= len(kept)
        given.append(kept.hex())
    folder = str(Path(library.origin).parent.parent)
    argv = [sys.executable, "-I", "-S", "-B", str(_CHILD), folder]
    try:
        ended = process.run(argv, json.dumps(given).encode() + b"\n", WALL_S, CPU_S)
    except Failure:
        return [{} for _ in codes]
    lines = ended.stdout.split(b"\n")[:-1]  # of a child that was ended, the lines that are whole
    left, found = MAX_DESCRIBED, []
    for line in lines[: len(codes)]:
        found.append(dict(list(_read(line).items())[:left]))
        left -= len(found[-1])
    return [*found, *({} for _ in codes[len(found) :])]


def _read(line: bytes) -> dict[str, CodeFunction]:
    """One line of the child, as far as it is well-formed."""
    try:
        said = strict_json.loads(line.decode("ascii"))
    except ValueError:
        return {}
    if not isinstance(said, dict):
        return {}
    return {f"0x{key}": one for key, value in said.items() if (one := _function(key, value)) is not None}


def _function(selector: str, value: Any) -> CodeFunction | None:  # noqa: ANN401  any JSON
    if not _SELECTOR.fullmatch(selector) or not isinstance(value, list) or len(value) != 3:
        return None
    arguments, mutability, reads = value
    if not isinstance(arguments, str) or not _ARGUMENTS.fullmatch(arguments) or not isinstance(reads, list):
        return None
    if mutability not in MUTABILITIES:
        return None
    known = [one for one in reads if isinstance(one, str) and _VARIABLE.fullmatch(one)]
    return CodeFunction(arguments, mutability, tuple(known[:MAX_READS]))
