"""A daemon whose journal's server is gone: what is in flight ends, and what is owed is settled afterwards."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio
import pytest

from fleet.app.wiring import at_work
from fleet.clock import SystemClock
from fleet.errors import FleetError
from fleet.events.daemon_events import Feed
from fleet.store.rows import RunRow
from tests.runs.conftest import STALLED_S, Shop, firing, nothing, persona
from tests.store.cluster import running

pytestmark = pytest.mark.anyio


async def test_what_is_in_flight_ends_when_the_server_of_the_journal_is_lost(tmp_path: Path) -> None:
    with running() as cluster:
        feed = Feed(tmp_path / "events.jsonl", clock=SystemClock())
        place = cluster.place()
        async with at_work(place, "devnet", stalled_s=STALLED_S) as (journal, source):
            one = {"qa-a": persona("qa-a")}
            shop = Shop(tmp_path, place, journal, source, one, feed, nothing)
            at_work_, over = anyio.Event(), anyio.Event()
            told = list[str]()

            async def acts(row: RunRow) -> None:
                at_work_.set()
                try:
                    await anyio.sleep_forever()
                finally:
                    told.append(shop.world.in_flight.why(row.run_id))
                    over.set()

            shop.work = acts
            await shop.queue.fire(firing("qa-a"))
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(shop.executor.run)
                    await at_work_.wait()
                    cluster.stop(signal.SIGQUIT)
                    await over.wait()
                    while shop.executor.live:  # noqa: ASYNC110
                        await anyio.sleep(0.05)
                    assert shop.ended == []
                    cluster.start()
                    shop.executor.drain(0)
            [why] = told
            assert why.startswith("the journal was lost: ")
            [row] = await shop.executor.left()
            assert row.state == "running"  # no one but the settler says how it ended
        feed.close()


async def test_a_journal_in_a_file_that_is_busy_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tmp_path / "events.jsonl", clock=SystemClock())
    async with at_work(tmp_path / "fleet.db", "devnet", stalled_s=STALLED_S) as (journal, source):
        shop = Shop(tmp_path, "", journal, source, {"qa-a": persona("qa-a")}, feed, nothing)
        gate = anyio.Event()

        async def waits(_row: RunRow) -> None:
            await gate.wait()

        shop.work = waits
        asked = list[str]()
        known = journal.at_hand

        async def busy(platform: str) -> tuple[dict[str, int], bool]:
            if shop.began and len(asked) < 4:
                asked.append(platform)
                raise Busy("another process holds it")
            gate.set() if asked else None
            return await known(platform)

        monkeypatch.setattr(journal, "at_hand", busy)
        await shop.queue.fire(firing("qa-a"))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(shop.executor.run)
                await gate.wait()
                while not shop.ended:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
                shop.executor.drain(0)
        assert shop.ended == [("qa-a@manual:1", "done", False)]
    feed.close()


class Busy(FleetError):
    retryable = True
