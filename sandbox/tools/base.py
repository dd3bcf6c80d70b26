"""The common fields of every result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """`error_class` and `hint` are the words of sandbox.errors; `latency_ms` of the act itself."""

    ok: bool
    latency_ms: float = 0.0
    error: str = ""
    error_class: str = ""
    hint: str = ""


PUBLIC = frozenset({"ok", "latency_ms", "error", "error_class", "hint"})
VOLATILE = frozenset({"latency_ms"})
