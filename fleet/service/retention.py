"""Room for new runs: the folders of old ones go, hour by hour, and it is told."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from fleet.errors import FleetError
from fleet.events.daemon_events import Feed, RunsRemoved, RunUnsettled
from fleet.gate.stop import stopped
from fleet.runs.context import FleetContext
from fleet.runs.retention import tidy

FIRST_S = 5.0
"""A start has other things to do."""
EVERY_S = 3600.0


class FolderRetention:
    """Removes what `keep` of the configuration, as it is now, does not keep. Nothing while STOP is there.

    What cannot be removed is told once, and tried again an hour later.
    """

    def __init__(self, world: Callable[[], FleetContext], feed: Feed, *, first_s: float = FIRST_S) -> None:
        self._world, self._feed, self._first_s = world, feed, first_s
        self._told = ""

    async def run(self) -> None:
        """Look until cancelled."""
        await anyio.sleep(self._first_s)
        while True:
            await self.look()
            await anyio.sleep(EVERY_S)

    async def look(self) -> None:
        """One round."""
        world = self._world()
        if stopped(world.state):
            return
        try:
            gone, stuck = await tidy(world.state, world.journal, world.config.keep, world.clock.now())
        except (FleetError, OSError) as error:
            self._complain(str(error))
            return
        if gone:
            self._feed.tell(RunsRemoved(runs=len(gone), bytes=sum(one.bytes for one in gone)))
        self._complain("; ".join(map(str, stuck)))

    def _complain(self, reason: str) -> None:
        if reason and reason != self._told:
            words = f"old runs are not removed: {reason}"
            self._feed.tell(RunUnsettled(run="", persona="", reason=words[:500]))
        self._told = reason
