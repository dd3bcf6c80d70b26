"""A contract's functions as the answer to `surface` describes them by their code. Pure.

The answer is a stranger's: only what is well-formed is kept, and types that a call can spell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.chain.evm_types import MUTABILITIES

READS = ("pure", "view")
_TYPE = re.compile(r"(address|bool|string|bytes\d{0,2}|u?int\d{1,3})(\[\])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """`types` are None where a call cannot spell them; `reads`: the variables that its code reads."""

    types: tuple[str, ...] | None
    mutability: str
    reads: tuple[str, ...]

    @property
    def constant(self) -> bool:
        """A view without arguments whose value is in the code: no call changes it."""
        return self.mutability == "pure" and self.types == ()


def typed(functions: object) -> dict[str, TypedFunction]:
    """By selector, of one facet's part of a surface."""
    found = {}
    for selector, one in functions.items() if isinstance(functions, Mapping) else ():
        if not isinstance(one, Mapping) or one.get("mutability") not in MUTABILITIES:
            continue
        arguments, reads = one.get("arguments"), one.get("reads")
        if isinstance(arguments, str) and isinstance(reads, list | tuple):
            found[str(selector)] = TypedFunction(
                spelled(arguments.split(",") if arguments else ()),
                str(one["mutability"]),
                tuple(map(str, reads)),
            )
    return found


def of_surface(value: object) -> dict[str, TypedFunction]:
    """By selector, of all facets of a surface."""
    facets: Sequence[Any] = value if isinstance(value, list) else ()
    return {
        selector: one
        for facet in facets
        if isinstance(facet, Mapping)
        for selector, one in typed(facet.get("functions")).items()
    }


def spelled(kinds: Sequence[str]) -> tuple[str, ...] | None:
    """Types as a call spells them, a signed integer as an unsigned one, whose small values are the same; None
    where one cannot be spelled."""
    if not all(map(_TYPE.fullmatch, kinds)):
        return None
    return tuple(kind.removeprefix("u").replace("int", "uint") if "int" in kind else kind for kind in kinds)
