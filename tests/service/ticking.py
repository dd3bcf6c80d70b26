"""One of several daemons in small: the real queue and executor, and runs that take no time. Until SIGTERM."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio

from fleet.app.wiring import at_work
from fleet.clock import SystemClock
from fleet.errors import TryAgain
from fleet.events.daemon_events import Feed
from tests.runs.conftest import Shop, firing, nothing, persona

PERSONAS = 20
AT_ONCE = 25


async def main(place: str, state: Path, ticks: int) -> None:
    personas = {f"qa-{n}": persona(f"qa-{n}") for n in range(PERSONAS)}
    feed = Feed(state / "events.jsonl", clock=SystemClock())
    async with at_work(place, "devnet", stalled_s=6) as (journal, source):
        shop = Shop(state, place, journal, source, personas, feed, nothing)
        shop.limit(4)

        async def listen() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM) as received:
                print("ready", flush=True)
                async for _ in received:
                    shop.executor.drain(10)
                    return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            tasks.start_soon(shop.executor.run)
            for first in range(0, ticks, AT_ONCE):
                await _fire(shop, range(first, first + AT_ONCE))
    feed.close()


async def _fire(shop: Shop, ticks: range) -> None:
    """As the clock does: what is due at one moment in one transaction."""
    while True:
        try:
            await shop.queue.fire_all(
                [firing(f"qa-{tick % PERSONAS}", f"registered:{tick}:0") for tick in ticks]
            )
            return
        except TryAgain:
            await anyio.sleep(0.2)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
