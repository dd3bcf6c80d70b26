"""Each half hour: whether what bounds the fleet holds, every result on record; what does not is a STOP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio

from fleet.clock import Clock
from fleet.errors import FleetError
from fleet.events.daemon_events import BoundaryChecked, Feed

EVERY_S = 1_800.0
BoundaryCheck = Callable[[], Awaitable[str]]
"""What is wrong, in words; "" while the boundary holds."""


class BoundaryWatch:
    """Makes each of the named checks in turn; `broken` is called with what does not hold."""

    def __init__(
        self,
        checks: Mapping[str, BoundaryCheck],
        feed: Feed,
        clock: Clock,
        broken: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._checks, self._feed, self._clock, self._broken = checks, feed, clock, broken

    async def run(self) -> None:
        """Look each half hour by the clock that never steps, first after the first one; until cancelled."""
        due = self._clock.monotonic()
        while True:
            due += EVERY_S
            await anyio.sleep(max(0.0, due - self._clock.monotonic()))
            await self.look()

    async def look(self) -> None:
        """One round. What cannot be looked at, because a journal does not answer, is on record as such."""
        for name, check in self._checks.items():
            try:
                fault = await check()
                self._feed.publish(BoundaryChecked(check=name, fault=fault))
                if fault:
                    await self._broken(name, fault)
            except FleetError as error:
                if not error.retryable:
                    raise
                self._feed.publish(BoundaryChecked(check=name, fault=f"not looked at to its end: {error}"))
