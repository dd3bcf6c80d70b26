"""What a process that stays for months remembers of runs that are over: nothing."""

from __future__ import annotations

import anyio
import pytest

from fleet.config import FleetConfig
from fleet.runs.janitor import TICK_S, Janitor
from fleet.store.rows import RunRow
from tests.runs.conftest import Shop, firing

pytestmark = pytest.mark.anyio


def _ended(_row: RunRow, *, found: bool) -> None:
    """Nobody listens."""


async def test_a_failure_is_forgotten_when_a_peer_settled_the_run(shop: Shop) -> None:
    await shop.queue.fire(firing("qa-a"))
    row = await shop.source.take({"qa-a": 1}, ())
    assert row is not None
    vars(shop.world)["config"] = FleetConfig()
    janitor = Janitor(shop.world, shop.executor, shop.feed, ended=_ended)
    for _ in range(2):
        await janitor.sweep()
    assert [event.where for event in shop.told("fault.met")] == [f"clean-up of run {row.run_id}"]
    assert janitor._pause() < TICK_S  # it is tried again soon
    await shop.journal.finish(row.run_id, "crashed", "settled elsewhere")
    await shop.source.done(row.run_id)
    await janitor.sweep()
    assert janitor._pause() == TICK_S


async def test_why_a_run_was_cancelled_is_forgotten_with_it(shop: Shop) -> None:
    """Also when it was cancelled before it was opened: then nobody else forgets it."""
    began = anyio.Event()

    async def work(_row: RunRow) -> None:
        began.set()
        await anyio.sleep_forever()

    async def unopened(row: RunRow, _one: object) -> None:
        await work(row)

    shop.executor._execute = unopened
    await shop.queue.fire(firing("qa-a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shop.executor.run)
        await began.wait()
        shop.executor.drain(0)
    assert shop.world.in_flight._cancelled == {}
