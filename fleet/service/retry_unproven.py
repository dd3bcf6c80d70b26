"""Fires again, a few times, a persona that saw a grave finding and could not prove it."""

from __future__ import annotations

from datetime import timedelta

import anyio

from fleet.clock import Clock, iso
from fleet.errors import TryAgain
from fleet.severity import GRAVE
from fleet.store.journal import Journal
from fleet.triage.items.unproven import unproven
from fleet.triggers.model import Firing, FiringSink

LOOK_S = 30.0
AFTER = timedelta(seconds=60)
"""Delay after the run that failed to prove it: the obstacle may need a moment to go away."""
TIMES = 3
"""Runs that failed to prove it, after which only the persona's own triggers return to it."""


class UnprovenRetry:
    """Keyed by the finding and the number of failed runs, so each retry is fired once.

    This platform only; a refused one (a spent day, a removed persona) is not fired again by
    this process.
    """

    def __init__(self, journal: Journal, sink: FiringSink, clock: Clock, platform: str) -> None:
        self._journal, self._sink, self._clock, self._platform = journal, sink, clock, platform
        self._fired: set[str] = set()

    async def run(self) -> None:
        while True:
            await anyio.sleep(LOOK_S)
            try:
                await self.look()
            except TryAgain:
                continue  # the journal is busy: the next pass is soon

    async def look(self) -> None:
        """Fire what is due."""
        now = self._clock.now()
        if not await self._journal.findings(None, ["unverified"]):
            return
        decisions = await self._journal.decisions(self._platform)
        for one in unproven(await self._journal.findings(), decisions, now):
            key = f"{one.persona}@unproven:{one.fingerprint}:{one.runs}"
            tried = key in self._fired or one.runs > TIMES
            if tried or one.severity not in GRAVE or one.at > iso(now - AFTER):
                continue
            self._fired.add(key)
            if (await self._journal.run(one.run)).platform == self._platform:
                why = f"not proven yet: {one.title}"
                await self._sink.fire(Firing(key=key, persona=one.persona, why=why, due=now))
