"""The common fields of every result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sandbox.errors import CLASSES, HINTS
from sandbox.spec import OneOf


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """`error_class` and `hint` are the words of sandbox.errors; `latency_ms` of the act itself."""

    ok: bool
    """Whether the act succeeded, by the tool's own measure."""
    latency_ms: float = 0.0
    """[ms] Time of the act itself."""
    error: str = ""
    """What went wrong, in the platform's or the tool's words; empty if nothing did."""
    error_class: Annotated[str, OneOf(CLASSES)] = ""
    """The error in one word; empty if nothing went wrong."""
    hint: Annotated[str, OneOf(HINTS)] = ""
    """The platform's own hint in one word, if its error has one."""


PUBLIC = frozenset({"ok", "latency_ms", "error", "error_class", "hint"})
VOLATILE = frozenset({"latency_ms"})
