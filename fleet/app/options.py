"""Start options of the resident service."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fleet.clock import Clock, SystemClock

GRACE_S = 20.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    state: Path
    folder: Path
    platform: str | None = None
    grace_s: float = GRACE_S
    port: int | None = None
    clock: Clock = field(default_factory=SystemClock)
    """Not a command-line option: a soak test sets a wrong clock."""
