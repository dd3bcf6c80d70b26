"""How grave a defect is: the only list of severities, from which every room derives its own choice.

A severity is added or weighed anew here alone; docs/reference/persona.schema.json is then generated again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Self


class Severity(StrEnum):
    """A severity, the gravest first. The value is the word in persona files, on the log and in the journal;
    `weight` orders them and is the factor of an item's rank; `score` is on the scale of CVSS, from 0 to 10.
    """

    weight: float
    score: float

    CRITICAL = "critical", 8.0, 9.5
    HIGH = "high", 4.0, 8.0
    MEDIUM = "medium", 2.0, 5.5
    LOW = "low", 1.0, 3.0
    INFO = "info", 0.5, 0.1

    def __new__(cls, word: str, weight: float, score: float) -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.weight = weight
        member.score = score
        return member


UNKNOWN: Final = "unknown"
"""Of an entry of the log that names none of ours."""
META: Final = "meta"
"""Of an entry that is not about a defect: triage's own summary."""

WEIGHTS: Mapping[str, float] = MappingProxyType({one.value: one.weight for one in Severity} | {UNKNOWN: 0.25})
"""Weight by word, the gravest first, with the one of `unknown`."""
ON_THE_LOG = (*WEIGHTS, META)
"""All words that the header of an entry may have."""

SEVERITIES: tuple[Severity, ...] = tuple(Severity)
GRAVE: tuple[Severity, ...] = tuple(one for one in Severity if one.weight >= Severity.HIGH.weight)
"""Proven and posted at the end of the turn that saw it, before anything else is asked (decision 65)."""
MINOR: tuple[Severity, ...] = tuple(one for one in Severity if one.weight <= Severity.LOW.weight)


def weight(word: str) -> float:
    """The weight of a severity as a row or an entry has it; what is not ours weighs as `unknown`."""
    return WEIGHTS.get(word, WEIGHTS[UNKNOWN])
