"""A few edits to one program of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, Edit, Material, choose
from sandbox.fuzz.inputs.tokens import text
from sandbox.fuzz.port import InputSource

MOST_EDITS = 4
MOST_IDLE = 3
"""Further edits where the first ones found nothing to change."""


def mutation(edits: Sequence[Edit], family: str) -> InputSource:
    """Inputs with one to `MOST_EDITS` of these edits that are not the program they were made of; most have
    one."""

    def mutated(corpus: Sequence[bytes], chance: Random) -> bytes | None:
        if not corpus:
            return None
        material = Material(corpus, family)
        before = material.program(chance).tokens
        parts = list(before)
        wanted = 1 + int(chance.random() ** 4 * MOST_EDITS)
        for tried in range(wanted + MOST_IDLE):
            if parts and (tried < wanted or tuple(parts) == before):
                choose(chance, edits)(parts, material, chance)
        made = text(parts)
        return made if 0 < len(made) <= MOST_BYTES and tuple(parts) != before else None

    return mutated
