"""What the parts of one process tell each other. Made before any of them, and given to each."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio


class WakeUp:
    """Ends another part's pause. What is set while that part is busy ends its next pause at once."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        """Something changed: look now."""
        self._event.set()

    async def wait(self, at_most_s: float) -> bool:
        """Pause; whether it was ended before its time."""
        with anyio.move_on_after(at_most_s):
            await self._event.wait()
        woken = self._event.is_set()
        self._event = anyio.Event()
        return woken


@dataclass(slots=True)
class Signals:
    """`work`: something waits, or may begin. `leftovers`: a run could not be settled, or is a dead peer's."""

    work: WakeUp = field(default_factory=WakeUp)
    leftovers: WakeUp = field(default_factory=WakeUp)
    held: str = ""
    """Why nothing new may begin (the disk is too full); "" when it may."""
