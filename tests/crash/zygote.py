"""Imports everything once, then forks one fleet per line of input; see forking.py."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio

import fleet.store.dispatch.dispatcher  # what a fleet imports only when it needs it
import fleet.store.sql.postgres  # noqa: F401
from fleet.app.bootstrap import Options
from fleet.app.daemon import make
from fleet.app.persona_sets import roster
from fleet.app.wiring import open_world
from fleet.chain.node.rpc import Rpc
from fleet.drivers.expect_check import check
from fleet.events.daemon_events import Feed
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.run import fire, recover
from fleet.service.metrics import Tally
from fleet.service.readiness import Notifier
from fleet.triggers.model import Firing
from tests.crash.forking import serve

LOOK_S = 0.05


async def by_hand(state: Path) -> None:
    """What `fleet run` does: recover what is there; exercise while nothing has been."""
    personas = good(state)
    async with open_world(state, personas=personas, platform="devnet") as made:
        world = replace(made, spread_s=0.0)
        reports = await recover(world)
        if all(row.outcome == "cancelled" for row in await world.journal.runs()):
            reports += [await fire(world, persona) for persona in personas.values()]
        assert all(report.settled for report in reports), reports


async def as_daemon(state: Path) -> None:
    """What a daemon does with one tick of a clock that every start sees anew, until nothing is left.

    Without its triggers: what they write down meanwhile would move the steps from trial to trial.
    """
    personas = good(state)
    async with (
        open_world(state, personas=personas, platform="devnet") as made,
        Rpc(made.platform.chain.rpc) as rpc,
    ):
        world = replace(made, spread_s=0.0)
        feed = Feed(state / "events.jsonl", clock=world.clock)
        options = Options(state, (state / "personas",), "devnet")
        daemon = make(options, world, rpc, personas, feed, Notifier(), Tally())

        async def tick() -> None:
            for name in personas:
                await daemon.queue.fire(
                    Firing(f"{name}@tick", name, "a test", datetime(2026, 1, 1, tzinfo=UTC))
                )
            while await left(world):  # noqa: ASYNC110 -- it is in a database, and says nothing by itself
                await anyio.sleep(LOOK_S)
            daemon.executor.drain(0)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(daemon.janitor.run)
            tasks.start_soon(tick)
            await daemon.executor.run()
            tasks.cancel_scope.cancel()
        feed.close()


async def left(world: FleetContext) -> bool:
    """Whether a run has no outcome yet, or keys lie in this state directory."""
    runs = [*await world.journal.queued_runs(), *await world.journal.open_runs()]
    return bool(runs or next(world.state.glob("runs/*/keys"), None))


def good(state: Path) -> dict[str, LoadedPersona]:
    personas, errors = roster(state / "personas")
    assert not errors, errors
    return personas


WAYS = {"hand": by_hand, "daemon": as_daemon}


if __name__ == "__main__":
    check("true", (), "bool")  # its grammar is most of what a short life would compute
    serve(WAYS)
