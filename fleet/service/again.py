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


class Again:
    """One key for a finding and the number of runs that left it, so each chance is taken once."""

    def __init__(self, journal: Journal, sink: Sink, clock: Clock) -> None:
        self._journal, self._sink, self._clock = journal, sink, clock

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
            if one.runs <= TIMES and one.at <= iso(now - AFTER):
                why = f"not proven yet: {one.title}"
                key = f"{one.persona}@unproven:{one.fingerprint}:{one.runs}"
                await self._sink.fire(Firing(key=key, persona=one.persona, why=why, due=now))
