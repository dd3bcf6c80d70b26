"""The table of strategies: a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sandbox.fuzz.inputs import suspicious
from sandbox.fuzz.inputs.binary import byte_mutation, wasm_mutation
from sandbox.fuzz.inputs.edits import EXPRESSION_EDITS, TOKEN_EDITS
from sandbox.fuzz.inputs.exports import export_mutation
from sandbox.fuzz.inputs.learned import learned
from sandbox.fuzz.inputs.lines import line_mutation
from sandbox.fuzz.inputs.lists import lists
from sandbox.fuzz.inputs.mutation import mutation
from sandbox.fuzz.inputs.nests import nests
from sandbox.fuzz.inputs.places import pairs, places
from sandbox.fuzz.inputs.productions import generator, of_family, parse
from sandbox.fuzz.inputs.pump import pump
from sandbox.fuzz.inputs.spelling import SPELLING_EDITS
from sandbox.fuzz.inputs.structure import GROUP_EDITS, SPLICE_EDITS, STATEMENT_EDITS
from sandbox.fuzz.port import InputSource
from sandbox.programs.program import Program

LOADER = "loader"

TEXT: dict[str, Callable[[str, str], InputSource | None]] = {
    "tokens": lambda family, grammar: mutation(TOKEN_EDITS, family),
    "expressions": lambda family, grammar: mutation(EXPRESSION_EDITS, family),
    "groups": lambda family, grammar: mutation(GROUP_EDITS, family),
    "statements": lambda family, grammar: mutation(STATEMENT_EDITS, family),
    "splice": lambda family, grammar: mutation(SPLICE_EDITS, family),
    "lists": lambda family, grammar: lists(family),
    "lines": lambda family, grammar: line_mutation,
    "spelling": lambda family, grammar: mutation(SPELLING_EDITS, family),
    "pump": lambda family, grammar: pump(family),
    "typed": lambda family, grammar: generator(found) if (found := of_family(family)) else None,
    "places": lambda family, grammar: places(found, family) if (found := of_family(family)) else None,
    "pairs": lambda family, grammar: pairs(found) if (found := of_family(family)) else None,
    "nests": lambda family, grammar: nests(found) if (found := of_family(family)) else None,
    "grammar": lambda family, grammar: generator(parse(grammar)) if grammar else None,
    "learned": lambda family, grammar: None if grammar else learned(family),
}
"""For a compiler, from its language's family and the grammar given; None where there is nothing to go by."""

BYTES: dict[str, InputSource] = {
    "wasm": wasm_mutation,
    "exports": export_mutation,
    "bytes": byte_mutation,
}
"""For a loader."""


def strategies(program: Program, part: str, grammar: str) -> Mapping[str, InputSource]:
    """The sources of inputs by name: a compiler's make UTF-8 text of at most 64 KiB, a loader's bytes. Raises
    ValueError for a grammar that is not a table of productions (sandbox/fuzz/inputs/productions.py)."""
    if part == LOADER:
        return BYTES
    found = {name: make(program.family, grammar) for name, make in TEXT.items()}
    return {name: source for name, source in found.items() if source is not None}


def seeds(program: Program, part: str) -> Sequence[bytes]:
    """What a search starts with, before anything is mutated: suspicious programs, or valid modules."""
    if part == LOADER:
        return suspicious.modules()
    own = (program.sample.encode(),) if program.sample else ()
    return tuple(dict.fromkeys((*own, *suspicious.programs(program.family))))
