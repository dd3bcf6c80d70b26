"""How fast a jail may ask one host: turns, evenly spaced, that all jails of a process share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable


class HostPace:
    """At most `rate` turns a second for each key, or what `rate_of` says of it; callers wait in order, and
    nothing is saved up.

    A caller that leaves while it waits takes no turn.
    """

    def __init__(
        self,
        rate: float,
        *,
        rate_of: Callable[[Hashable], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate_of, self._clock, self._sleep = rate_of or (lambda _: rate), clock, sleep
        self._next: dict[Hashable, float] = {}
        self._held: dict[Hashable, float] = {}
        self._queues: dict[Hashable, asyncio.Lock] = {}

    def hold(self, key: Hashable, seconds: float) -> None:
        """Give no turn for these seconds: the host asked for a pause."""
        self._next[key] = max(self._next.get(key, 0.0), self._clock() + seconds)
        self._held[key] = self._next[key]

    def held(self, key: Hashable) -> float:
        """Seconds until the pause is over that a host asked for; 0 without one."""
        return max(0.0, self._held.get(key, 0.0) - self._clock())

    async def turn(self, key: Hashable) -> float:
        """Wait for the next turn; the seconds that it took."""
        began = self._clock()
        async with self._queues.setdefault(key, asyncio.Lock()):
            pause = self._next.get(key, 0.0) - self._clock()
            if pause > 0:
                await self._sleep(pause)
            now = self._clock()
            self._next[key] = max(now, self._next.get(key, 0.0)) + 1 / self._rate_of(key)
            return now - began
