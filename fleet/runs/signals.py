"""Signals between the parts of one process; created before the parts and passed to each."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio


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


@dataclass(slots=True)
class Signals:
    """`work`: a run is waiting, or may start. `leftovers`: a run is unsettled, or a dead peer's."""

    work: WakeUp = field(default_factory=WakeUp)
    leftovers: WakeUp = field(default_factory=WakeUp)
    held: str = ""
    """Why no run may start (the disk is too full), else ""."""
