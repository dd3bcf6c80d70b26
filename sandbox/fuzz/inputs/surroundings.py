"""A refused program among other blanks and comments, names and texts: what a message says of a place, and how
it finds it, depends on what stands before."""

from __future__ import annotations

from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, Edit, Material, choose
from sandbox.fuzz.inputs.spelling import blanks, renamed, stretched
from sandbox.fuzz.inputs.tokens import parsed, text

CHANGES = 8
"""Most changes of one program: what none of them disturbs is tried with all of them."""
_EDITS: tuple[Edit, ...] = (blanks, blanks, blanks, renamed, stretched)


def surrounded(source: bytes, chance: Random, family: str) -> bytes | None:
    """The program with several changes that mostly leave its message what it was."""
    material = Material((source,), family)
    parts = list(parsed(source, family).tokens)
    for _ in range(1 + int(chance.random() * CHANGES)):
        if parts:
            choose(chance, _EDITS)(parts, material, chance)
    made = text(parts)
    return made if 0 < len(made) <= MOST_BYTES and made != source else None
