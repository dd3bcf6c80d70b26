"""Pairs of texts that a model judges, and its verdicts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AskedPair:
    """Two items by fingerprint, what each says, and why they may be the same."""

    a: str
    b: str
    text_a: str
    text_b: str
    why: str = ""

    @property
    def key(self) -> str:
        return "+".join(sorted((self.a, self.b)))


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What the suggester says of one pair."""

    same: bool
    why: str
