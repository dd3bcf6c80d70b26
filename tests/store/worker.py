"""A daemon in small: triggers every tick, executes what the queue hands it, until SIGTERM.

A run is an effect that is opened, some sleep, and an outcome. Who finds it claimed settles it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import suppress

from fleet.errors import TryAgain
from fleet.store.dispatch import Dispatcher
from fleet.store.journal import Journal


class Daemon:
    def __init__(self, journal: Journal, me: str, seconds: float) -> None:
        self.journal, self.me, self.seconds = journal, me, seconds

    async def execute(self, run_id: str) -> None:
        if await self.journal.claim(run_id, pid=1, pid_start=1):
            effect = await self.journal.intend(run_id, "jail", self.me, {"from": time.monotonic()})
            await asyncio.sleep(self.seconds)
            await self.journal.resolve(effect, "done", {"to": time.monotonic()})
            await self.journal.finish(run_id, "completed", self.me)
        elif await self.journal.start_settling(run_id):
            await self.journal.finish(run_id, "interrupted", self.me)


async def main(url: str, me: str, ticks: int, seconds: float, stalled_s: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with await Journal.open(url, busy_s=20) as journal:
        daemon = Daemon(journal, me, seconds)
        dispatcher = Dispatcher(url, journal, "d", daemon.execute, concurrency=3, stalled_s=stalled_s)
        await dispatcher.prepare()
        working = asyncio.create_task(dispatcher.work(stop))
        print("ready", flush=True)
        for tick in range(ticks):
            with suppress(TryAgain):
                persona = f"p{tick % 5}"
                await dispatcher.trigger(
                    f"{tick}-{me}", persona=persona, key=f"{persona}@{tick}",
                    platform="d", trigger="t", rung="observe", budget={},
                )  # fmt: skip
        print("triggered", flush=True)
        await working


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])))
