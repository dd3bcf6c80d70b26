"""The next chance: who saw something grave and could not prove it is fired again soon, a few times."""

from __future__ import annotations

from datetime import timedelta

import anyio

from fleet.clock import Clock, iso
from fleet.errors import TryAgain
from fleet.store.journal import Journal
from fleet.triage.unproven import unproven
from fleet.triggers.model import Firing, Sink

LOOK_S = 30.0
AFTER = timedelta(seconds=60)
"""How long after the run that could not: what stood in its way may need a moment."""
TIMES = 3
"""Runs that saw it and could not prove it, after which only the persona's own triggers come back to it."""


class SecondChance:
    """One key for a finding and the number of runs that left it, so each chance is offered once.

    Of this platform only; what is refused (a spent day, a persona that is gone) is not offered again by
    this process.
    """

    def __init__(self, journal: Journal, sink: Sink, clock: Clock, platform: str) -> None:
        self._journal, self._sink, self._clock, self._platform = journal, sink, clock, platform
        self._offered: set[str] = set()

    async def run(self) -> None:
        while True:
            await anyio.sleep(LOOK_S)
            try:
                await self.look()
            except TryAgain:
                continue  # the journal is busy: the next look is soon

    async def look(self) -> None:
        """Fire what is due."""
        now = self._clock.now()
        if not await self._journal.findings(None, ["unverified"]):
            return
        for one in unproven(await self._journal.findings()):
            key = f"{one.persona}@unproven:{one.fingerprint}:{one.runs}"
            if key in self._offered or one.runs > TIMES or one.at > iso(now - AFTER):
                continue
            self._offered.add(key)
            if (await self._journal.run(one.run)).platform == self._platform:
                why = f"not proven yet: {one.title}"
                await self._sink.fire(Firing(key=key, persona=one.persona, why=why, due=now))
