"""Fires once when an outage is over: after the last of several that followed each other, not at each end.

A run ends an outage in the platform's book in the journal (fleet/findings/outage.py), of this daemon or of
another one. The watch looks at the book when a run has ended, and now and then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

import anyio

from fleet.clock import Clock, SystemClock, rest
from fleet.errors import FleetError
from fleet.findings.outage import FACTS, read_book
from fleet.triggers.deliver import deliver, described, tell
from fleet.triggers.model import EVERYONE, FactStore, Firing, FiringSink, Skip

EVENT = "outage-over"
KEY = "triggers.outages"
"""Prefix of the journal's key: the ended outages that are known; the platform's name follows."""
LOOK_S = 30.0


class OutageEndWatch:
    """The outages that ended before the first look do not fire."""

    def __init__(
        self,
        platform: str,
        facts: FactStore,
        sink: FiringSink,
        subscribers: Callable[[str], Collection[str]],
        *,
        every_s: float = LOOK_S,
        clock: Clock | None = None,
    ) -> None:
        self._book, self._key = FACTS + platform, f"{KEY}.{platform}"
        self._facts, self._sink, self._subscribers = facts, sink, subscribers
        self._every_s, self._clock = every_s, clock or SystemClock()
        self._woken = anyio.Event()
        self._told = ""

    def wake(self) -> None:
        """Look soon: a run has ended."""
        self._woken.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._woken = anyio.Event()
            await self.turn()
            with anyio.move_on_after(rest(self._every_s)):
                await self._woken.wait()

    async def turn(self) -> None:
        """Look once and handle any failure."""
        problem = ""
        try:
            await self.look()
        except FleetError as error:
            problem = described(error)
        if problem and problem != self._told:
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@{EVENT}", f"could not look: {problem}"))
        self._told = problem

    async def look(self) -> None:
        """Fire if outages have ended since the last look and none is open."""
        book = read_book(await self._facts.get(self._book))
        ended = [one.fp for one in book.ended]
        stored = await self._facts.get(self._key)
        if stored is None:
            await self._facts.swap(self._key, None, json.dumps(ended))
            return
        known = set(json.loads(stored))
        new = [name for name in ended if name not in known]
        if book.open is not None or not new:
            return
        if await self._fire(new[-1]):
            await self._facts.swap(self._key, stored, json.dumps(ended))

    async def _fire(self, outage: str) -> bool:
        """Fire, then store: after a crash in between, the key is the same. False to try again."""
        refused = 0
        personas = sorted(self._subscribers(EVENT))
        for persona in personas:
            firing = Firing(f"{persona}@{EVENT}:{outage}", persona, "an outage is over", self._clock.now())
            if problem := await deliver(self._sink, firing):
                await tell(self._sink, Skip(persona, firing.key, problem))
                refused += 1
        return not refused or refused < len(personas)
