"""Fires once when an outage is over: after the last of several that followed each other, not at each end.

A run ends an outage in the platform's book in the journal (fleet/findings/outage.py), of this daemon or of
another one. The watch looks at the book when a run has ended, and now and then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from fleet.clock import Clock
from fleet.findings.outage import FACTS, read_book
from fleet.triggers.model import FactStore, FiringSink
from fleet.triggers.poller import Poller

EVENT = "outage-over"
KEY = "triggers.outages"
"""Prefix of the journal's key: the ended outages that are known; the platform's name follows."""
LOOK_S = 30.0


class OutageEndWatch(Poller):
    """The outages that ended before the first look do not fire."""

    EVENT = EVENT

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
        super().__init__(sink, every_s, clock)
        self._book, self._key = FACTS + platform, f"{KEY}.{platform}"
        self._facts, self._subscribers = facts, subscribers

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
        keys = [(persona, f"{persona}@{EVENT}:{new[-1]}") for persona in sorted(self._subscribers(EVENT))]
        if await self.fire(keys, "an outage is over"):
            await self._facts.swap(self._key, stored, json.dumps(ended))
