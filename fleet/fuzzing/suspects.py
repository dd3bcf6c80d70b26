"""A defect that rounds claim, and the calls that show whether it is one. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from fleet.findings.proof import TRIES
from fleet.fuzzing.claims import PARTS, SOURCE_BYTES, DefectClaim, fits
from fleet.personas.model import Step
from sandbox.judging.port import KINDS

TOOL = "qa_compile"
LATER = 3
"""Times that a suspect of which no look could tell anything waits for a later, perhaps quieter moment."""
_PLACEHOLDER = re.compile(r"\{(?:name|run|site|proxy)\}|\{(?:face|target):")


@dataclass(slots=True, kw_only=True)
class Suspect:
    """`looks` in fresh jails, of which `shown` showed a defect to the oracles. One that is not `minimal` is
    asked again, to be shrunk further."""

    part: str
    signature: str
    kind: str
    said: str
    source: str
    variant: str = ""
    seen: int = 1
    from_size: int = 0
    origin: str = ""
    minimal: bool = True
    looks: int = 0
    shown: int = 0

    @property
    def waits(self) -> bool:
        """Whether it is still to be looked at: one that no look has shown is given up."""
        return not self.shown and self.looks < TRIES

    @property
    def size(self) -> int:
        """Bytes of the input, and of its variant."""
        sizes = (len(one) // 2 if self.part == "loader" else len(one.encode()) for one in self._inputs)
        return sum(sizes)

    @property
    def _inputs(self) -> tuple[str, ...]:
        return (self.source, self.variant) if self.variant else (self.source,)

    def meet(self, claim: DefectClaim) -> None:
        """The same defect again: a smaller input takes the place of one that no look has shown, or that was
        not minimal."""
        self.seen = min(self.seen + claim.seen, 1 << 40)
        other = (len(claim.source) + len(claim.variant), claim.source, claim.variant)
        smaller = other < (len(self.source) + len(self.variant), self.source, self.variant)
        if smaller and not (self.shown and self.minimal):
            self.source, self.variant = claim.source, claim.variant
            self.looks = self.shown = 0
            self.kind, self.said = claim.kind, claim.said
            self.from_size, self.origin = claim.from_size, claim.origin
        self.minimal = self.minimal or claim.minimal or not smaller

    def steps(self) -> tuple[Step, ...]:
        """Single calls that show it, in fresh jails; none for an input that a repro cannot hold as it is."""
        if any(map(_PLACEHOLDER.search, self._inputs)):
            return ()
        name = "module_hex" if self.part == "loader" else "source"
        first: dict[str, Any] = {name: self.source}
        if self.variant:
            return (_step(first), _step({name: self.variant}))
        if self.kind == "non-determinism":
            return (_step(first), _step(first))
        if self.kind == "differential":
            return (_step(first), _step(first | {"other": True}))
        if self.kind == "round-trip":
            return (_step(first), _step(first | {"printed": True}))
        return (_step(first),)

    def as_data(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of(cls, data: object) -> Suspect | None:
        """What `as_data` gave; None for anything else."""
        if not isinstance(data, Mapping) or set(data) != {one.name for one in fields(cls)}:
            return None
        if any(type(data[one.name]).__name__ != one.type for one in fields(cls)):
            return None
        made = cls(**data)
        valid = made.part in PARTS and made.kind in KINDS and fits(made.source, made.part, SOURCE_BYTES)
        return made if valid else None


def _step(args: Mapping[str, Any]) -> Step:
    return Step(tool=TOOL, args=dict(args))
