"""A daemon with one more side task, which dies when the file `die` appears in the state directory."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from fleet.app.bootstrap import Options
from fleet.app.daemon import make
from fleet.app.persona_sets import roster
from fleet.app.wiring import open_world
from fleet.chain.node.rpc import Rpc
from fleet.clock import SystemClock
from fleet.errors import FleetError
from fleet.events.daemon_events import Feed
from fleet.files import state_dir
from fleet.service.metrics import Tally
from fleet.service.readiness import Notifier


async def main(folder: Path) -> None:
    state = state_dir()

    async def die() -> None:
        while True:
            if (state / "die").exists():
                raise ZeroDivisionError("of the test")
            await anyio.sleep(0.05)

    found, _ = roster(folder)
    async with (
        open_world(state, personas=found, platform="devnet") as world,
        Rpc(world.platform.chain.rpc) as rpc,
    ):
        feed = Feed(state / "events.jsonl", clock=SystemClock())
        more = [("the task of the test", die)]
        daemon = make(Options(state, (folder,)), world, rpc, found, feed, Notifier(), Tally(), more=more)
        await daemon.serve()


if __name__ == "__main__":
    try:
        anyio.run(main, Path(sys.argv[1]))
    except* FleetError as group:
        print([str(error) for error in group.exceptions], file=sys.stderr)
        sys.exit(1)
