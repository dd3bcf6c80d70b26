"""Signals between the parts of one process; created before the parts and passed to each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from fleet.events.model import (
    CheckFailed,
    CredentialSealed,
    Event,
    Footer,
    GateDenied,
    InstructionSeen,
    OutageEnded,
    OutageNoticed,
)

_NEWS = (CheckFailed, CredentialSealed, Footer, GateDenied, InstructionSeen, OutageEnded, OutageNoticed)


class WakeUp:
    """Ends another part's pause. If set while that part is busy, its next pause ends at once."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        """End the pause: something changed."""
        self._event.set()

    async def wait(self, at_most_s: float) -> bool:
        """Pause; return whether `set` ended it early."""
        with anyio.move_on_after(at_most_s):
            await self._event.wait()
        woken = self._event.is_set()
        self._event = anyio.Event()
        return woken


QUIET_S, MOST_S = 5.0, 30.0
"""Seconds without another event that end a burst, and the most that a burst delays a run."""


class Bursts:
    """Events that come in crowds, by persona: one run for a crowd, begun when it is over, or late enough."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: dict[str, tuple[float, float]] = {}  # first and last event

    def note(self, persona: str) -> None:
        """An event came."""
        now = self._monotonic()
        self._seen[persona] = (self._seen.get(persona, (now, now))[0], now)

    def under_way(self) -> set[str]:
        """Personas whose run waits for the end of a burst."""
        now = self._monotonic()
        return {
            name
            for name, (first, last) in self._seen.items()
            if now - last < QUIET_S and now - first < MOST_S
        }

    def began(self, persona: str) -> None:
        """A run of it began: it sees all of them."""
        self._seen.pop(persona, None)


@dataclass(slots=True)
class Signals:
    """`work`: a run is waiting, or may start. `leftovers`: a run is unsettled, or a dead peer's. `asked`: a
    run waits for a person, or there may be something to tell one."""

    work: WakeUp = field(default_factory=WakeUp)
    leftovers: WakeUp = field(default_factory=WakeUp)
    asked: WakeUp = field(default_factory=WakeUp)
    bursts: Bursts = field(default_factory=Bursts)
    held: str = ""
    """Why no run may start (the disk is too full), else ""."""

    def noted(self, event: Event) -> None:
        """Of a run: what a person may be told of is looked at now."""
        if isinstance(event, _NEWS):
            self.asked.set()
