"""The closed set of verdicts, and one verdict."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = (
    "panic",
    "crash",
    "hang",
    "memory",
    "interference",
    "internal-error",
    "invalid-output",
    "missing-entry",
    "non-determinism",
    "round-trip",
    "metamorphic",
    "differential",
)
"""Classes of defects."""
JUDGED = ("", "accepted", "clean_error", "unknown", *KINDS)
"""Kinds of a verdict; "" where nothing was executed."""


@dataclass(frozen=True, slots=True)
class ExecutionVerdict:
    """What is to be said of one execution.

    `kind` is one of JUDGED. `said` is the message's template: numbers, addresses, paths and the input's own
    names folded. `place` are the top frames of the program's own trace, or "". `features` are words for what
    the output is made of.
    """

    kind: str
    said: str = ""
    place: str = ""
    features: frozenset[str] = frozenset()

    @property
    def sound(self) -> bool:
        return self.kind in ("accepted", "clean_error")

    @property
    def signature(self) -> str:
        """One defect has one, whatever input shows it."""
        return " ".join(filter(None, (self.kind, self.place or self.said)))
