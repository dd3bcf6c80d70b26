"""Prune the folders of old runs, hourly, and log it."""

from __future__ import annotations

from functools import partial

import anyio
from anyio import to_thread

from fleet.errors import FleetError
from fleet.events.daemon_events import Feed, RunsRemoved, RunUnsettled
from fleet.gate.stop import stopped
from fleet.runs import activity
from fleet.runs.context import FleetContext
from fleet.runs.retention import MEGABYTE, beyond, look, tidy

FIRST_S = 5.0
"""Delay of the first pass: a start has other things to do."""
EVERY_S = 3600.0


class FolderRetention:
    """Remove what the current `keep` configuration does not retain. Removes nothing during STOP.

    A folder that cannot be removed is logged once and retried hourly.
    """

    def __init__(self, world: FleetContext, feed: Feed, *, first_s: float = FIRST_S) -> None:
        self._world, self._feed, self._first_s = world, feed, first_s
        self._told = ""

    async def run(self) -> None:
        """Run until cancelled."""
        await anyio.sleep(self._first_s)
        while True:
            await self.look()
            await anyio.sleep(EVERY_S)

    async def look(self) -> None:
        """One round."""
        world = self._world
        if stopped(world.state):
            return
        keep = world.config.keep
        try:
            gone, stuck = await tidy(
                world.state, world.journal, keep, world.clock.now(), world.platform.schedule.end
            )
            excess = beyond(await look(world.state, world.journal), keep)
            await to_thread.run_sync(activity.archive, world.state, world.clock.now())
            await to_thread.run_sync(activity.prune, world.state, keep.days, world.clock.now())
            prune = partial(world.vault.prune, keep.vault_days, keep.people_days, world.clock.now())
            await to_thread.run_sync(prune)
        except (FleetError, OSError, ValueError) as error:
            self._complain(str(error))
            return
        if gone:
            self._feed.publish(RunsRemoved(runs=len(gone), bytes=sum(one.bytes for one in gone)))
        kept = (
            f"records are kept for keep.record_days = {keep.record_days}, and what is owed: "
            f"{excess / MEGABYTE:.0f} MB more than keep.megabytes = {keep.megabytes}"
        )
        self._complain("; ".join([*map(str, stuck), *([kept] if excess > MEGABYTE else [])]))

    def _complain(self, reason: str) -> None:
        if reason and reason != self._told:
            words = f"old runs are not removed: {reason}"
            self._feed.publish(RunUnsettled(run="", persona="", reason=words[:500]))
        self._told = reason
