"""Leaves out of a row of steps what its findings do not need, by the answers that are there. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.personas.model import Step

Results = Sequence[Mapping[str, Any]]


def narrowed(
    steps: tuple[Step, ...], results: Results, apart: Sequence[Sequence[int]], facts: Facts
) -> tuple[tuple[Step, ...], Results]:
    """A question and its answers without those groups of steps in the row of its last call without which the
    oracles say the same: each try of a proof is as many requests less.

    `apart`: positions in that row, a large group before those in it. All that one row shows is kept in it, as
    its proofs share their answers. Steps of one moment are counted from the first, and stay.
    """
    if not apart or len(results) < len(steps) or steps[-1].args.get("together"):
        return steps, results
    before = [Exchange(one.tool, one.args, got) for one, got in zip(steps[:-1], results, strict=False)]
    step, result = steps[-1], results[-1]
    pairs = list(zip(step.args.get("steps", ()), result.get("answers", ()), strict=False))

    def row(kept: Sequence[int]) -> Exchange:
        args = {**step.args, "steps": [pairs[at][0] for at in kept]}
        return Exchange(step.tool, args, {**result, "answers": [pairs[at][1] for at in kept]})

    def shown(kept: Sequence[int]) -> set[tuple[str, str]]:
        return {(one.oracle, one.sighting.signature) for one in judge([*before, row(kept)], facts)}

    kept = list(range(len(pairs)))
    if not (seen := shown(kept)):
        return steps, results
    for group in apart:
        fewer = [at for at in kept if at not in group]
        if fewer and len(fewer) < len(kept) and shown(fewer) == seen:
            kept = fewer
    last = row(kept)
    return (*steps[:-1], step.model_copy(update={"args": last.args})), [*results[:-1], last.result]
