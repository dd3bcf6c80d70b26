"""Compilers with defects: drawn, tried, and kept when a witness shows each and ordinary programs do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from bench.fuzzing.build import built, planted
from bench.fuzzing.faults import PlantedFault, candidates, classes
from bench.fuzzing.reference import ReferenceStand, reachable

COMMON = 0.12
"""A place that more of the ordinary programs have hides what lies behind it, and is found at once."""
SPARE = 3
"""Candidates that are tried for each defect wanted."""


@dataclass(frozen=True, slots=True)
class FaultyCompiler:
    """`copy` is the folder that is run; no defect is on until it is named."""

    seed: int
    copy: Path
    faults: tuple[PlantedFault, ...]

    @property
    def all_on(self) -> str:
        return ",".join(one.id for one in self.faults)


def generated(seed: int, count: int, folder: Path, ordinary: Sequence[bytes]) -> FaultyCompiler:
    """The seed's compiler in `folder`, with `count` defects, each class as often as the others.

    `ordinary` are accepted programs; the first must show no defect at all.
    """
    tried = list(islice(candidates(seed), SPARE * max(count, len(classes()))))
    copy = built(folder, tried)
    each = -(-count // len(classes()))
    kept: list[PlantedFault] = []
    with ReferenceStand(copy) as stand:
        first, *rest = (frozenset(stand.hits(source)) for source in ordinary)
        seen = Counter(name for names in rest for name in names)
        for fault in tried:
            of_class = sum(one.klass == fault.klass for one in kept)
            common = fault.id in first or seen[fault.id] > COMMON * len(rest)
            common |= any(one.place.id == fault.place.id for one in kept)
            if len(kept) < count and of_class < each and not common and reachable(stand, fault):
                kept.append(fault)
    if len(kept) < count:
        raise ValueError(f"seed {seed}: only {len(kept)} of {count} defects can be reached")
    faults = tuple(replace(one, id=f"f{index}") for index, one in enumerate(kept))
    planted(copy, faults)
    return FaultyCompiler(seed, copy, faults)
