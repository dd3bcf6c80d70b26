"""Delivery by yielding: a caller iterates over a run as it happens, without slowing it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio

from fleet.events.model import Event, Footer, Header

ROOM = 1_024
"""Events queued for a slow caller; when the queue is full, new ones are dropped and counted."""


@dataclass(frozen=True, slots=True)
class Lagged:
    """`count` events were dropped here, because the caller did not keep up."""

    count: int


class LiveReader:
    """A reader of streams, and an async iterator for one caller.

    With a `run` it takes that run's events and ends after its footer, which is never dropped; without one it
    takes every run's until `close`.
    """

    def __init__(self, run: str = "", *, room: int = ROOM) -> None:
        self._run, self._room = run, room
        self._waiting: deque[Event | Lagged] = deque()
        self._wake: anyio.Event | None = None
        self.closed = False
        self.lagged = 0
        """Events dropped so far."""

    def __call__(self, event: Event) -> None:
        if self.closed or (self._run and event.run != self._run):
            return
        if len(self._waiting) >= self._room and not isinstance(event, Footer):
            self.lagged += 1
            if self._waiting and isinstance(last := self._waiting[-1], Lagged):
                self._waiting[-1] = Lagged(last.count + 1)
            else:
                self._waiting.append(Lagged(1))
        else:
            self._waiting.append(event)
        if self._run and isinstance(event, Footer):
            self.close()
        self._nudge()

    def _nudge(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def close(self) -> None:
        """Accept no more events; queued ones are still delivered."""
        self.closed = True
        self._nudge()

    async def events(self) -> AsyncGenerator[Event | Lagged, None]:
        """Every event from now on, in order, with a `Lagged` in place of dropped ones."""
        try:
            while self._waiting or not self.closed:
                if self._waiting:
                    yield self._waiting.popleft()
                else:
                    self._wake = anyio.Event()
                    await self._wake.wait()
        finally:
            self.close()


class Hub:
    """One reader of all runs of a process, for callers that come and go."""

    def __init__(self) -> None:
        self._callers: list[LiveReader] = []
        self._runs: set[str] = set()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Header):
            self._runs.add(event.run)
        for caller in list(self._callers):
            caller(event)
        self._callers = [caller for caller in self._callers if not caller.closed]
        if isinstance(event, Footer):
            self._runs.discard(event.run)

    def follow(self, run: str) -> LiveReader | None:
        """Events from this moment on, or None for a run that is not active in this process."""
        if run not in self._runs:
            return None
        caller = LiveReader(run)
        self._callers.append(caller)
        return caller

    def close(self) -> None:
        """End the iteration of every caller."""
        for caller in self._callers:
            caller.close()
        self._callers.clear()
