"""Imports everything once, then forks one fleet per line of input, a JSON object of a `Life`.

Each child is a real process with real signals, without a second of imports per trial, and leaves by
`_exit`. Answers each line with the child's wait status and the names of the journal steps it took.
"""

from __future__ import annotations

import gc
import json
import os
import select
import sys
import traceback
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio

import fleet.store.dispatch.dispatcher  # what a fleet imports only when it needs it
import fleet.store.sql.postgres  # noqa: F401
from fleet.app.daemon import make
from fleet.app.options import Options
from fleet.app.persona_sets import roster
from fleet.app.wiring import open_world
from fleet.chain.rpc import Rpc
from fleet.drivers.expect_check import check
from fleet.events.daemon_events import Feed
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.lifecycle import fire, recover
from fleet.service.metrics import Tally
from fleet.service.notify import Notifier
from fleet.triggers.model import Firing

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
        options = Options(state, state / "personas", "devnet")
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


def child(life: dict[str, str], steps: int) -> None:
    state, way, crash_at = Path(life["state"]), life["way"], life["crash_at"]
    with (state / "child.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["CONFIGURATION_DIRECTORY"] = str(state / "config")
    os.environ["QA_CRASH_COUNT"] = f"/proc/self/fd/{steps}"
    os.environ |= {name: life[name] for name in ("QA_STOP_AT", "QA_STOP_TRACE") if life.get(name)}
    if crash_at.startswith("b"):
        os.environ["QA_CRASH_BEFORE"] = crash_at[1:]
    elif crash_at:
        os.environ["QA_CRASH_AT"] = crash_at
    try:
        anyio.run(WAYS[way], state)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    check("true", (), "bool")  # its grammar is most of what a short life would compute
    gc.freeze()
    for line in sys.stdin:
        life = json.loads(line)
        reader, writer = os.pipe()  # what is in it outlives the child
        pid = os.fork()
        if pid == 0:
            child(life, writer)
        _, status = os.waitpid(pid, 0)
        os.close(writer)
        os.set_blocking(reader, False)
        taken = os.read(reader, 1 << 16) if readable(reader) else b""
        os.close(reader)
        steps = [step.partition(" ")[2] for step in taken.decode().splitlines()]
        print(json.dumps([os.waitstatus_to_exitcode(status), steps]), flush=True)


def readable(reader: int) -> bool:
    return bool(select.select([reader], [], [], 0)[0])


if __name__ == "__main__":
    main()
