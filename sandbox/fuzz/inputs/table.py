"""The table of strategies: a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from sandbox.fuzz.inputs.binary import byte_mutation, wasm_mutation
from sandbox.fuzz.inputs.edits import EXPRESSION_EDITS, TOKEN_EDITS
from sandbox.fuzz.inputs.exports import export_mutation
from sandbox.fuzz.inputs.inside import INSIDE_EDITS
from sandbox.fuzz.inputs.learned import learned
from sandbox.fuzz.inputs.lines import line_mutation
from sandbox.fuzz.inputs.lists import lists
from sandbox.fuzz.inputs.material import mutation
from sandbox.fuzz.inputs.nests import nests
from sandbox.fuzz.inputs.places import each_place, pairs, places
from sandbox.fuzz.inputs.productions import Productions, generator, of_family, parse
from sandbox.fuzz.inputs.pump import pump
from sandbox.fuzz.inputs.rates import AlternativeRates
from sandbox.fuzz.inputs.spelling import SPELLING_EDITS
from sandbox.fuzz.inputs.structure import GROUP_EDITS, SPLICE_EDITS, STATEMENT_EDITS
from sandbox.fuzz.port import InputSource
from sandbox.programs.program import Program

FOLDER = Path(__file__).with_name("suspicious")
GENERIC = "generic"
_BREAK = "\n=====\n"
"""A line of five equals signs stands between two programs."""

LOADER = "loader"

Table = Productions | None

TEXT: dict[str, Callable[[str, Table], InputSource | None]] = {
    "tokens": lambda family, _table: mutation(TOKEN_EDITS, family),
    "expressions": lambda family, _table: mutation(EXPRESSION_EDITS, family),
    "groups": lambda family, _table: mutation(GROUP_EDITS, family),
    "statements": lambda family, _table: mutation(STATEMENT_EDITS, family),
    "splice": lambda family, _table: mutation(SPLICE_EDITS, family),
    "lists": lambda family, _table: lists(family),
    "lines": lambda _family, _table: line_mutation,
    "spelling": lambda family, _table: mutation((*SPELLING_EDITS, *INSIDE_EDITS), family),
    "pump": lambda family, _table: pump(family),
    "typed": lambda _family, table: generator(table) if table else None,
    "places": lambda family, table: places(table, family) if table else None,
    "nests": lambda _family, table: nests(table) if table else None,
}
"""For a compiler, from its language's family and its table of well-formed programs; None where there is
nothing to go by."""

BYTES: dict[str, InputSource] = {
    "wasm": wasm_mutation,
    "exports": export_mutation,
    "bytes": byte_mutation,
}
"""For a loader."""


def strategies(
    program: Program, part: str, grammar: str, rates: AlternativeRates | None = None, turn: int = 0
) -> Mapping[str, InputSource]:
    """The sources of inputs by name: a compiler's make UTF-8 text of at most 64 KiB, a loader's bytes.
    `rates` learn what the compiler accepts of its family's tables; `turn` tells rounds apart. Raises
    ValueError for a grammar that is not a table of productions (sandbox/fuzz/inputs/productions.py)."""
    if part == LOADER:
        return BYTES
    family = program.family
    typed, loose = (
        replace(known, rates=rates) if (known := of_family(family, loose=one)) else None
        for one in (False, True)
    )
    found = {name: make(family, typed) for name, make in TEXT.items()}
    found["pairs"] = pairs(typed, turn) if typed else None
    found["loose"] = each_place(loose, turn) if loose else None
    found["grammar"] = generator(parse(grammar)) if grammar else None
    found["learned"] = None if grammar else learned(family)
    return {name: source for name, source in found.items() if source is not None}


def seeds(program: Program, part: str) -> Sequence[bytes]:
    """What a search starts with, before anything is mutated: suspicious programs, or valid modules."""
    if part == LOADER:
        return modules()
    own = (program.sample.encode(),) if program.sample else ()
    return tuple(dict.fromkeys((*own, *programs(program.family))))


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
