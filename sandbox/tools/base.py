"""What every result says first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`error_class` and `hint` are the words of sandbox.faults; `latency_ms` of the act itself."""

    ok: bool
    latency_ms: float = 0.0
    error: str = ""
    error_class: str = ""
    hint: str = ""
