"""Reads what a round claims: a jail wrote it, so every text and number is capped, and what does not fit is
left out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.text import line
from sandbox.judging.port import KINDS
from sandbox.tools.qa_fuzz import MOST_EXECUTIONS, MOST_SECONDS

PARTS = ("compiler", "loader")
SOURCE_BYTES = 64 << 10
"""A longer input is not taken: a repro must fit a request line and a record."""
INPUT_BYTES = 16 << 10
"""The same for an input of the corpus."""
DEFECTS_A_ROUND = 64
INPUTS_A_ROUND = 1_000
MOST_SEEDS = 100_000
SAID_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectClaim:
    """One defect as a round reports it."""

    signature: str
    kind: str
    said: str
    source: str
    variant: str = ""
    seen: int = 1
    from_size: int = 0
    origin: str = ""
    minimal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundClaim:
    """One round; `runner` and `stopped` in its own words, `cpu_s` is its processor time."""

    executions: int
    accepted: int
    seconds: float
    behaviours: int
    defects: tuple[DefectClaim, ...]
    corpus: tuple[str, ...]
    cpu_s: float = 0.0
    runner: str = ""
    stopped: str = ""
    seeds_done: int = 0
    lost: int = 0
    """Executions without a result."""


def round_claim(result: Mapping[str, Any], part: str) -> RoundClaim:
    """What is taken of a result of qa_fuzz."""
    executions = _count(result.get("executions"), MOST_EXECUTIONS)
    corpus = [one for one in _listed(result.get("corpus"), INPUTS_A_ROUND) if fits(one, part, INPUT_BYTES)]
    claimed = (_defect(one, part) for one in _listed(result.get("defects"), DEFECTS_A_ROUND))
    return RoundClaim(
        executions=executions,
        accepted=_count(result.get("accepted"), executions),
        seconds=_seconds(result.get("seconds")),
        behaviours=_count(result.get("behaviours"), executions),
        defects=tuple(one for one in claimed if one is not None),
        corpus=tuple(dict.fromkeys(corpus)),
        cpu_s=_seconds(result.get("cpu_s")),
        runner=line(str(result.get("runner", "")), 100),
        stopped=line(str(result.get("stopped", "")), 40),
        seeds_done=_count(result.get("seeds_done"), MOST_SEEDS),
        lost=_count(result.get("lost"), executions),
    )


def fits(value: object, part: str, most: int) -> bool:
    """Whether a value is an input of at most `most` bytes: UTF-8 text, or hex for the loader."""
    if not isinstance(value, str) or not value:
        return False
    try:
        size = len(value.encode()) if part != "loader" else len(bytes.fromhex(value))
    except ValueError:
        return False
    return size <= most


def _defect(raw: object, part: str) -> DefectClaim | None:
    if not isinstance(raw, Mapping) or raw.get("kind") not in KINDS:
        return None
    signature, source, variant = (raw.get(name, "") for name in ("signature", "source", "variant"))
    whole = isinstance(signature, str) and fits(source, part, SOURCE_BYTES)
    if not whole or not (variant == "" or fits(variant, part, SOURCE_BYTES)):
        return None
    name = line(str(signature), SAID_CHARS)
    if not name.startswith(str(raw["kind"])):  # it would pass for a defect of another class
        return None
    return DefectClaim(
        signature=name,
        kind=str(raw["kind"]),
        said=line(str(raw.get("said", "")), SAID_CHARS),
        source=str(source),
        variant=str(variant),
        seen=max(_count(raw.get("seen"), MOST_EXECUTIONS), 1),
        from_size=_count(raw.get("from_size"), SOURCE_BYTES),
        origin=line(str(raw.get("origin", "")), 40),
        minimal=raw.get("minimal") is not False,
    )


def _listed(value: object, most: int) -> list[Any]:
    return list(value[:most]) if isinstance(value, list | tuple) else []


def _count(value: object, most: int) -> int:
    return min(max(value, 0), most) if isinstance(value, int) and not isinstance(value, bool) else 0


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return min(max(float(value), 0.0), MOST_SECONDS * 2)
