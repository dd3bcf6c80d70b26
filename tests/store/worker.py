"""A daemon in small: triggers every tick, executes what the queue hands it, until SIGTERM.

A run is an effect that is opened, some sleep, and an outcome. One that a dead daemon began is settled.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import suppress

import anyio

from fleet.errors import TryAgain
from fleet.store.dispatch.dispatcher import Dispatcher
from fleet.store.dispatch.source import Owner
from fleet.store.journal import Journal
from fleet.store.rows import NewRun, RunRow

AT_ONCE = 3


class Daemon:
    def __init__(self, journal: Journal, source: Dispatcher, me: str, seconds: float) -> None:
        self.journal, self.source, self.me, self.seconds = journal, source, me, seconds
        self.live: set[str] = set()

    async def work(self, stop: asyncio.Event) -> None:
        """Until `stop`; then what runs ends first."""
        async with anyio.create_task_group() as tasks:
            while not stop.is_set():
                with suppress(TryAgain):
                    await self._turn(tasks)
                await anyio.sleep(0.05)

    async def _turn(self, tasks: anyio.abc.TaskGroup) -> None:
        waiting, _ = await self.journal.at_hand("d")
        while len(self.live) < AT_ONCE and (row := await self.source.take(waiting, ())):
            self.live.add(row.run_id)
            tasks.start_soon(self._execute, row)
        for row in await self.source.left():
            if row.run_id not in self.live:
                await self.journal.finish(row.run_id, "interrupted", self.me)
                await self.source.done(row.run_id)

    async def _execute(self, row: RunRow) -> None:
        effect = await self.journal.intend(row.run_id, "jail", self.me, {"from": time.monotonic()})
        await asyncio.sleep(self.seconds)
        if await self.source.mine(row.run_id):
            await self.journal.resolve(effect, "done", {"to": time.monotonic()})
            await self.journal.finish(row.run_id, "completed", self.me)
        self.live.discard(row.run_id)
        await self.source.done(row.run_id)


async def main(url: str, me: str, ticks: int, seconds: float, stalled_s: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with (
        await Journal.open(url, busy_s=20) as journal,
        Dispatcher(url, journal, "d", Owner(1, 1, me), stalled_s=stalled_s).open() as source,
    ):
        working = asyncio.create_task(Daemon(journal, source, me, seconds).work(stop))
        print("ready", flush=True)
        for tick in range(ticks):
            with suppress(TryAgain):
                persona = f"p{tick % 5}"
                await source.trigger(
                    NewRun(
                        run_id=f"{tick}-{me}",
                        persona=persona,
                        key=f"{persona}@{tick}",
                        platform="d",
                        trigger="t",
                        rung="observe",
                        budget={},
                    )
                )
        print("triggered", flush=True)
        await working


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])))
