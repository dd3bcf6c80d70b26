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
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from fleet.errors import ConfigError
from fleet.jail.process import proc_stat
from fleet.store.dispatch.dispatcher import Dispatcher, _ended
from fleet.store.dispatch.jobs import Jobs, run_of
from fleet.store.dispatch.source import Owner
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import RunRow
from tests.doubles.journal import new_run
from tests.store.cluster import Cluster

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
        me: str, *, ticks: int = 0, seconds: float = 0.0, stalled_s: float = 2.0, **environment: str
    ) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, str(WORKER), place, me, str(ticks), str(seconds), str(stalled_s)],
            text=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(WORKER.parents[2]), **environment},
        )
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


def _made(
    journal: Journal, place: str, me: str, *, stalled_s: float = 1.0, found: Callable[[], object] = bool
) -> Dispatcher:
    return Dispatcher(place, journal, "d", Owner(1, 1, me), stalled_s=stalled_s, found=found)


async def test_several_daemons_write_down_their_own_dial(journal: Journal, place: str) -> None:
    source = Dispatcher(place, journal, "d", Owner(1, 1, "one"), rung=lambda: "propose")
    async with source.open():
        assert await _queue(source, "by hand", "q", hand=True)
        assert await source.begin("by hand")
        assert await _queue(source, "r1")
        assert (await _until_taken(source)).rung == "propose"
    assert (await journal.run("by hand")).rung == "propose"


async def _until_taken(source: Dispatcher) -> RunRow:
    with anyio.fail_after(20):
        while True:
            if row := await source.take({"p": 1}, ()):
                return row
            await anyio.sleep(0.05)


async def _until_left(source: Dispatcher) -> RunRow:
    """Runs come to a peer only by looking."""
    with anyio.fail_after(20):
        while True:
            assert await source.take({}, ()) is None
            if rows := await source.left():
                return rows[0]
            await anyio.sleep(0.05)


async def _begun(journal: Journal) -> None:
    with anyio.fail_after(20):
        while True:
            if await journal.effects(None):
                return
            await anyio.sleep(0.02)


async def _queue(dispatcher: Dispatcher, run_id: str, persona: str = "p", *, hand: bool = False) -> bool:
    return await dispatcher.trigger(
        new_run(run_id, persona),
        hand=hand,
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


@pytest.mark.crash
@pytest.mark.timeout(300)
async def test_a_rescuer_that_stops_stops_nobody(journal: Journal, start: Start) -> None:
    """SIGSTOP in the middle of a rescue: its session lives on, and the others rescue all the same."""
    dying = start("dying", ticks=1, seconds=60)
    _said(dying, "ready")
    _said(dying, "triggered")
    await _begun(journal)
    stopping = start("stopping", QA_STOP_AT="queue.rescue#1")
    _said(stopping, "ready")
    dying.kill()
    with anyio.fail_after(60):
        while (stat := proc_stat(stopping.pid)) is None or stat.state != "T":  # noqa: ASYNC110 -- another process
            await anyio.sleep(0.05)
    _said(start("living"), "ready")
    (row,) = await _all_ended(journal, 1, within=120)
    assert (row.outcome, row.detail) == ("interrupted", "living")
    stopping.send_signal(signal.SIGCONT)
    stopping.send_signal(signal.SIGTERM)
    assert await anyio.to_thread.run_sync(stopping.wait, 30) == 0
    assert list((await _exercised(journal)).values()) == [1]


async def test_a_stalled_job_is_put_back_once(cluster: Cluster, journal: Journal, place: str) -> None:
    """Two see it stalled; the second finds it with a third, who has just begun, and lets it be."""
    async with _made(journal, place, "gone", stalled_s=60).open() as gone:
        await _queue(gone, "r1")
        await _until_taken(gone)
        async with Jobs(place, "d").open() as one, Jobs(place, "d").open() as two:
            cluster.do("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'", place)
            await one.beat()
            await two.beat()
            (seen,), (also,) = await one.stalled(60), await two.stalled(60)
            await one.rescue(seen)
            assert (await two.fetch()) is not None
            await one.rescue(also)
            assert [run_of(job) for job in await two.own()] == ["r1"]


async def test_a_run_that_something_here_still_has_in_hand_is_not_taken_back(
    journal: Journal, place: str
) -> None:
    """What had it before a peer did could go on from what is no longer true: that ends first."""
    async with _made(journal, place, "one", stalled_s=60).open() as one:
        await _queue(one, "r1")
        await _until_taken(one)
        async with _made(journal, place, "peer", stalled_s=60).open() as peer:
            (job,) = await one._jobs.own()
            await one._jobs.put_back(job)
            assert (await _until_left(peer)).daemon == "peer"
        for _ in range(3):
            assert await one.take({}, (), {"r1"}) is None
            assert (await journal.run("r1")).daemon == "peer"
        assert await one.take({}, (), ()) is None
        assert (await journal.run("r1")).daemon == "one"


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


async def test_a_server_that_is_away_does_not_fail_a_stop(cluster: Cluster, place: str) -> None:
    async with Jobs(place, "devnet").open():
        await anyio.to_thread.run_sync(cluster.stop)
    cluster.spawn()
    await anyio.to_thread.run_sync(cluster.wait)


async def test_a_daemon_that_drains_is_not_a_dead_one(journal: Journal, place: str) -> None:
    """It takes nothing more for longer than the dead are waited for, and is still known as alive."""
    async with (
        _made(journal, place, "slow").open() as slow,
        _made(journal, place, "other").open() as other,
    ):
        await _queue(slow, "r1")
        row = await _until_taken(slow)
        for _ in range(35):
            assert await other.take({}, ()) is None
            await anyio.sleep(0.1)
        assert await other.left() == []
        assert await slow.mine(row.run_id)
        assert [left.run_id for left in await slow.left()] == ["r1"]


async def test_what_a_daemon_leaves_is_a_peers_at_once(journal: Journal, place: str) -> None:
    async with _made(journal, place, "heir", stalled_s=60).open() as heir:
        async with _made(journal, place, "first", stalled_s=60).open() as first:
            await _queue(first, "r1")
            assert (await _until_taken(first)).daemon == "first"
        assert (await _until_left(heir)).daemon == "heir"
        assert not await first.mine("r1")


async def test_a_zombie_learns_that_its_run_is_a_peers(
    cluster: Cluster, journal: Journal, place: str
) -> None:
    """The loop stood still for longer than the others wait: they have the run, and it lets go."""
    found: list[int] = []
    async with _made(journal, place, "zombie").open() as zombie:
        await _queue(zombie, "r1")
        await _until_taken(zombie)
        assert zombie._keeper is not None
        zombie._keeper.cancel()  # as if the loop stood still
        async with _made(journal, place, "peer", found=lambda: found.append(1)).open() as peer:
            assert (await _until_left(peer)).run_id == "r1"
            assert found == [1]
            assert not await zombie.mine("r1")
            assert await zombie.left() == []
            assert [row.run_id for row in await peer.left()] == ["r1"]

            await _until_workers(cluster, place, 1)  # the dead are not kept for ever
            zombie._keeper = asyncio.create_task(zombie._keep())  # and one that lives after all works again
            await _until_workers(cluster, place, 2)
            await _queue(zombie, "r2", persona="q")
            assert (await _until_taken(zombie)).run_id == "r2"
            assert await peer.take({"q": 1}, ()) is None


async def _until_workers(cluster: Cluster, place: str, count: int) -> None:
    with anyio.fail_after(10):
        while True:
            if cluster.do("SELECT count(*) FROM procrastinate_workers", place) == [(count,)]:
                return
            await anyio.sleep(0.05)


async def test_a_run_that_is_held_keeps_its_persona_until_it_is_done(journal: Journal, place: str) -> None:
    async with _made(journal, place, "one").open() as one, _made(journal, place, "two").open() as two:
        await _queue(one, "r1")
        await _queue(one, "r2")
        await _queue(one, "r3", persona="q")
        assert (await _until_taken(one)).run_id == "r1"
        assert (await _until_taken(two)).run_id == "r3"
        assert await one.take({"p": 1}, ()) is None
        assert await two.take({"p": 1}, ()) is None
        await journal.finish("r1", "done")
        await one.done("r1")
        assert (await _until_taken(two)).run_id == "r2"


async def test_a_run_without_a_job_gets_one(journal: Journal, place: str) -> None:
    """Somebody queued it by the journal alone, or its job was lost with a run that had begun."""
    for run_id in ("queued", "begun", "elsewhere"):
        await journal.trigger(new_run(run_id, run_id, platform="e" if run_id == "elsewhere" else "d"))
    await journal.claim("begun", pid=1, pid_start=1, daemon="dead")
    async with _made(journal, place, "one").open() as one:
        assert (await _until_taken(one)).run_id == "queued"
        with anyio.fail_after(10):
            while [row.run_id for row in await one.left()] != ["queued", "begun"]:
                assert await one.take({}, ()) is None
                await anyio.sleep(0.05)
    assert (await journal.run("elsewhere")).state == "queued"


async def test_a_run_by_hand_is_its_makers(journal: Journal, place: str) -> None:
    async with _made(journal, place, "hand").open() as hand, _made(journal, place, "peer").open() as peer:
        await _queue(hand, "r1", hand=True)
        assert await peer.take({"p": 1}, ()) is None
        assert await hand.begin("r1")
        await _queue(hand, "r2", hand=True)
        assert not await hand.begin("r2")  # its persona is at work
        row = await journal.run("r2")
        assert (row.outcome, row.detail) == ("cancelled", "another daemon is running its persona")
        await journal.finish("r1", "done")
        await hand.done("r1")


async def test_a_run_by_hand_that_nobody_began_is_forgotten(
    cluster: Cluster, journal: Journal, place: str
) -> None:
    async with _made(journal, place, "gone").open() as gone:
        await _queue(gone, "r1", hand=True)
    async with _made(journal, place, "peer").open():
        (row,) = await _all_ended(journal, 1)
        assert (row.outcome, row.detail) == ("cancelled", "the process ended before it began")
        await anyio.sleep(0.3)
        assert cluster.do("SELECT count(*) FROM procrastinate_jobs", place) == [(0,)]


async def test_a_run_by_hand_of_a_dead_process_is_settled_by_a_daemon(journal: Journal, place: str) -> None:
    async with _made(journal, place, "hand").open() as hand:
        await _queue(hand, "r1", hand=True)
        assert await hand.begin("r1")
    async with _made(journal, place, "peer").open() as peer:
        assert (await _until_left(peer)).run_id == "r1"


async def test_a_job_whose_answer_was_lost_is_put_back(
    cluster: Cluster, journal: Journal, place: str
) -> None:
    async with _made(journal, place, "one").open() as one:
        await _queue(one, "r1")
        await one._jobs.fetch()  # and nobody heard of it
        assert cluster.do("SELECT status::text FROM procrastinate_jobs", place) == [("doing",)]
        assert (await _until_taken(one)).run_id == "r1"


async def test_a_run_without_its_job_is_not_queued(cluster: Cluster, journal: Journal, place: str) -> None:
    async with _made(journal, place, "one").open() as one:
        cluster.do("ALTER TABLE procrastinate_jobs RENAME TO hidden", place)
        with pytest.raises(ConfigError, match="not those of this version"):
            await _queue(one, "r1")
        assert await journal.runs() == []
        cluster.do("ALTER TABLE hidden RENAME TO procrastinate_jobs", place)
        assert await _queue(one, "r1")
        assert not await _queue(one, "r1")
        assert cluster.do("SELECT count(*) FROM procrastinate_jobs", place) == [(1,)]


async def test_a_journal_in_a_file_has_one_daemon(place: str) -> None:
    async with await Journal.open(MEMORY) as journal:
        with pytest.raises(ConfigError, match="needs the journal on PostgreSQL"):
            _made(journal, place, "x")


async def test_a_keeper_that_loses_a_cancellation_is_ended_all_the_same() -> None:
    async def deaf() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    with anyio.fail_after(10):
        await _ended(task)
    assert task.cancelled()
