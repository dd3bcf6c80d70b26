"""A process that is killed beside each step of an act on a page: its intent in the journal, its lines of
egress, its arrival at the server. Prints a line of JSON for each kill: what records and ledger say once
another process has settled the run.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio

from fleet.broker.egress_read import read_egress
from fleet.broker.egress_record import EGRESS, Calls, EgressEntry, EgressLog
from fleet.clock import SystemClock
from fleet.events.chain import verify
from fleet.runs.context import FleetContext
from fleet.runs.settlement.left import settle_pages
from fleet.store.journal import Journal
from tests.runs.killed_hold import Kills, apart
from tests.runs.table import RUN, persona, seated
from tests.runs.test_nothing_lost import CART

SERVER = "server"
"""What reached the server: a byte for each request."""


async def act(root: Path, kills: Kills) -> None:
    """One act, as session and broker make it."""

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        log, calls = table.drive.runner.session.egress, Calls(1, 1)
        entry = EgressEntry(verb="POST", host="site", what="/cart")
        kills.tick()
        log.begin(calls, entry)
        kills.tick()
        with (root / SERVER).open("a") as server:
            server.write("x")
        kills.tick()
        entry.status = 201
        log.end(calls, entry, entry.record(""))
        kills.tick()
        return {"ok": True, "status": 201, "location": "/cart/1"}

    async with seated(root, persona(), answer=answer, platform=CART) as table:
        kills.beside(table.world.journal, "intend")
        kills.beside(table.world.journal, "resolve")
        await table.drive.runner.session.call("qa_fetch", {"url": "http://site/cart", "method": "POST"})
        kills.tick()
        await settle_pages(table.world, RUN)


async def after(root: Path) -> dict[str, Any]:
    """What stands there once the next process has settled the run, twice."""
    folder = root / "state" / "runs" / RUN
    if folder.is_dir():
        EgressLog(folder, clock=SystemClock()).close()
    async with await Journal.open(root / "state" / "fleet.db") as journal:
        world = cast(FleetContext, SimpleNamespace(journal=journal, folder=lambda _: folder))
        for _ in range(2):
            await settle_pages(world, RUN)
        rows = await journal.effects(RUN, ["page"])
    server = root / SERVER
    return {
        "asked": len(server.read_text()) if server.exists() else 0,
        "effects": [row.state for row in rows],
        "lines": [row["rule"] for row in read_egress(folder)],
        "fault": verify(folder / EGRESS).fault if (folder / EGRESS).exists() else "",
    }


async def tell(place: Path, told: Path) -> None:
    told.write_text(json.dumps(await after(place)))


def main(root: Path) -> None:
    at, killed = 0, True
    while killed:
        at += 1
        place = root / str(at)
        place.mkdir()
        status, told = apart(partial(anyio.run, act, place, Kills(at))), place / "told.json"
        killed = os.WIFSIGNALED(status)
        assert apart(partial(anyio.run, tell, place, told)) == 0
        print(json.dumps({"at": at, "status": status} | json.loads(told.read_text())), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
