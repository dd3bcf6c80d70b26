"""Two daemons and one queue: nothing twice, nothing lost, and the living settle what the dead began."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from fleet.errors import ConfigError
from fleet.store.dispatch import Dispatcher
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import RunRow
from tests.store.cluster import Cluster
from tests.store.worker import Daemon

pytestmark = pytest.mark.anyio
WORKER = Path(__file__).with_name("worker.py")
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def place(cluster: Cluster) -> str:
    return cluster.place()


@pytest.fixture
async def journal(place: str) -> AsyncIterator[Journal]:
    async with await Journal.open(place, busy_s=20) as opened:
        yield opened


@pytest.fixture
def start(place: str) -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def start(
        me: str, *, ticks: int = 0, seconds: float = 0.0, stalled_s: float = 2.0
    ) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, str(WORKER), place, me, str(ticks), str(seconds), str(stalled_s)],
            text=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(WORKER.parents[2])},
        )  # fmt: skip
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def _said(child: subprocess.Popen[str], word: str) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == f"{word}\n"


async def _all_ended(journal: Journal, count: int, within: float = 40) -> list[RunRow]:
    with anyio.fail_after(within):
        while True:
            rows = await journal.runs(limit=9999)
            if len(rows) == count and all(row.state == "ended" for row in rows):
                return rows
            await anyio.sleep(0.1)


async def _begun(journal: Journal) -> None:
    with anyio.fail_after(20):
        while True:
            if await journal.effects(None):
                return
            await anyio.sleep(0.02)


async def _queue(dispatcher: Dispatcher, run_id: str, persona: str = "p") -> bool:
    return await dispatcher.trigger(
        run_id, persona=persona, key=run_id, platform="d", trigger="t", rung="observe", budget={}
    )


async def _exercised(journal: Journal) -> Counter[str]:
    return Counter(effect.run_id for effect in await journal.effects(None, kinds=["jail"]))


async def test_every_tick_is_one_run_whoever_triggers_it(journal: Journal, start: Start) -> None:
    workers = [start(me, ticks=100) for me in ("one", "two")]
    rows = await _all_ended(journal, 100)
    assert {row.outcome for row in rows} == {"completed"}
    assert Counter(row.key for row in rows) == {f"p{tick % 5}@{tick}": 1 for tick in range(100)}
    assert await _exercised(journal) == {row.run_id: 1 for row in rows}
    assert {row.detail for row in rows} == {"one", "two"}
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0


async def test_runs_of_one_persona_do_not_overlap(journal: Journal, start: Start) -> None:
    for me in ("one", "two"):
        start(me, ticks=15, seconds=0.3)
    rows = {row.run_id: row for row in await _all_ended(journal, 15)}
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for effect in await journal.effects(None):
        spans[rows[effect.run_id].persona].append((effect.data["from"], effect.data["to"]))
    assert len(spans) == 5
    assert all(before[1] <= after[0] for one in spans.values() for before, after in pairwise(sorted(one)))


@pytest.mark.crash
async def test_the_living_settles_what_the_dead_began(journal: Journal, start: Start) -> None:
    dying = start("dying", ticks=1, seconds=60)
    _said(dying, "ready")
    _said(dying, "triggered")
    await _begun(journal)
    living = start("living")
    _said(living, "ready")
    dying.kill()
    began = time.monotonic()
    (row,) = await _all_ended(journal, 1)
    assert (row.outcome, row.detail) == ("interrupted", "living")
    assert list((await _exercised(journal)).values()) == [1]
    assert time.monotonic() - began < 15


async def test_both_go_on_after_a_restart_of_the_server(
    cluster: Cluster, journal: Journal, start: Start
) -> None:
    workers = [start(me, ticks=60, seconds=0.1, stalled_s=6.0) for me in ("one", "two")]
    for worker in workers:
        _said(worker, "ready")
    await anyio.sleep(0.5)
    await anyio.to_thread.run_sync(cluster.stop)
    cluster.spawn()
    await anyio.to_thread.run_sync(cluster.wait)
    for worker in workers:
        await anyio.to_thread.run_sync(_said, worker, "triggered")
    before = time.monotonic()
    rows = await _all_ended(journal, 60, within=60)
    late = {row.detail for row in rows if row.outcome == "completed"}
    assert late == {"one", "two"}
    assert set((await _exercised(journal)).values()) == {1}
    assert [worker.poll() for worker in workers] == [None, None]
    assert time.monotonic() - before < 60


async def test_a_daemon_that_drains_is_not_a_dead_one(journal: Journal, place: str) -> None:
    slow, other = Daemon(journal, "slow", 3.5), Daemon(journal, "other", 0)
    draining = Dispatcher(place, journal, "d", slow.execute, stalled_s=1.0)
    await draining.prepare()
    await _queue(draining, "r1")
    stop, end = asyncio.Event(), asyncio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(draining.work, stop)
        await _begun(journal)
        stop.set()
        tasks.start_soon(Dispatcher(place, journal, "d", other.execute, stalled_s=1.0).work, end)
        rows = await _all_ended(journal, 1)
        end.set()
    assert [(row.outcome, row.detail) for row in rows] == [("completed", "slow")]


async def test_a_cancelled_daemon_hands_its_runs_over(journal: Journal, place: str) -> None:
    aborted = Dispatcher(place, journal, "d", Daemon(journal, "aborted", 60).execute, stalled_s=1.0)
    await aborted.prepare()
    await _queue(aborted, "r1")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(aborted.work, asyncio.Event())
        await _begun(journal)
        tasks.cancel_scope.cancel()
    end = asyncio.Event()
    async with anyio.create_task_group() as tasks:
        heir = Daemon(journal, "heir", 0)
        tasks.start_soon(Dispatcher(place, journal, "d", heir.execute, stalled_s=1.0).work, end)
        rows = await _all_ended(journal, 1)
        end.set()
    assert [(row.outcome, row.detail) for row in rows] == [("interrupted", "heir")]


async def test_a_run_that_could_not_be_settled_is_looked_at_again(journal: Journal, place: str) -> None:
    looks = 0

    async def execute(run_id: str) -> None:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise OSError("the chain is away")
        await journal.finish(run_id, "failed")

    dispatcher = Dispatcher(place, journal, "d", execute, stalled_s=1.0)
    await dispatcher.prepare()
    await _queue(dispatcher, "r1")
    end = asyncio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(dispatcher.work, end)
        await _all_ended(journal, 1)
        end.set()
    assert looks == 3


async def test_a_run_without_its_job_is_not_queued(cluster: Cluster, journal: Journal, place: str) -> None:
    dispatcher = Dispatcher(place, journal, "d", Daemon(journal, "x", 0).execute)
    with pytest.raises(ConfigError, match="not those of this version"):
        await _queue(dispatcher, "r1")
    assert await journal.runs() == []
    await dispatcher.prepare()
    await dispatcher.prepare()
    assert await _queue(dispatcher, "r1")
    assert not await _queue(dispatcher, "r1")
    assert cluster.do("SELECT count(*) FROM procrastinate_jobs", place) == [(1,)]


async def test_a_journal_in_a_file_has_one_daemon(place: str) -> None:
    async with await Journal.open(MEMORY) as journal:
        with pytest.raises(ConfigError, match="needs the journal on PostgreSQL"):
            Dispatcher(place, journal, "d", Daemon(journal, "x", 0).execute)
