"""Pairs of texts that a model judges, and its verdicts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AskedPair:
    """Two items by fingerprint, and what each says."""

    a: str
    b: str
    text_a: str
    text_b: str

    @property
    def key(self) -> str:
        return "+".join(sorted((self.a, self.b)))


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What the suggester says of one pair."""

    same: bool
    why: str
