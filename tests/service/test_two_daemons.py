"""Two daemons, two state directories, one journal on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from fleet.store.journal import Journal
from fleet.store.rows import RunRow
from tests.service.conftest import CREATE, FETCH, LONG, Up, persona, processes_of
from tests.store.cluster import Cluster, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
STALLED_S = 6
LONG_S = 60
"""Longer than a busy machine lets a loop stand still: nobody is taken for dead who is not."""
TICKS = 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
async def pair(up: Up, cluster: Cluster, tmp_path: Path) -> AsyncIterator[tuple[Up, Up]]:
    """Two hosts with the fleet's keys, each with a state directory of its own."""
    up.place = cluster.place()
    for name in ("state", "personas", "config"):
        shutil.copytree(tmp_path / name, tmp_path / "two" / name)
    other = Up(tmp_path / "two" / "state", up.devnet, place=up.place)
    try:
        yield up, other
    finally:
        for process in other.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _start(pair: tuple[Up, Up], *, stalled_s: int) -> None:
    for host in pair:
        store = f'[store]\nurl = "{host.place}"\nstalled_s = {stalled_s}\n'
        (host.state.parent / "config" / "fleet.toml").write_text(store)
        host.start("--grace", "0")


async def _minted(pair: tuple[Up, Up]) -> tuple[str, Up, Up]:
    """A run in flight that has minted a name, the host that has it, and the other one."""
    found: list[tuple[str, Up, Up]] = []

    async def look(here: Up, there: Up) -> None:
        run = await here.minted(90)
        found.append((run, here, there))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look, pair[0], pair[1])
        tasks.start_soon(look, pair[1], pair[0])
    return found[0]


async def _row(up: Up, run: str) -> RunRow:
    async with await Journal.open(up.place) as journal:
        return await journal.run(run)


@pytest.mark.devnet
@pytest.mark.jail
@pytest.mark.crash
async def test_what_a_killed_daemon_began_is_settled_by_the_other(pair: tuple[Up, Up]) -> None:
    for host in pair:
        host.drop("qa-long", LONG)
    _start(pair, stalled_s=STALLED_S)
    run, dead, alive = await _minted(pair)
    assert not (alive.state / "runs" / run).exists()
    await dead.end(dead.processes[0], signal.SIGKILL)
    assert any(await dead.held(run))
    owner = (await _row(dead, run)).daemon
    (settled,) = await alive.until(lambda: [one for one in alive.told("run.settled") if one.run == run], 40)
    assert settled.outcome == "crashed"
    assert not any(await alive.held(run))
    row = await _row(alive, run)
    assert (row.state, row.outcome) == ("ended", "crashed")
    assert row.daemon != owner
    assert len(alive.footers(run)) == 1
    async with await Journal.open(alive.place) as journal:
        keys = await journal.effects(run, kinds=["key"])
        assert keys
        assert {(key.state, key.data["key"]) for key in keys} == {("released", "")}
    assert not (alive.state / "runs" / run / "keys").exists()

    assert (dead.state / "runs" / run / "keys").is_dir()
    (dead.personas / "qa-long.md").unlink()
    again = dead.start("--grace", "0")
    await dead.until(lambda: not (dead.state / "runs" / run / "keys").exists(), 40)
    assert [one.runs for one in dead.told("daemon.lost")] == [(run,)]  # a peer has settled it
    assert alive.told("daemon.lost") == []
    assert await dead.end(again) == await alive.end(alive.processes[0]) == 0
    rows = await alive.runs()
    assert len({one.key for one in rows}) == len(rows)
    assert [one.state for one in rows if one.state not in ("ended", "queued")] == []
    for one in rows:
        assert not any(await alive.held(one.run_id))
    assert processes_of(alive.state) == processes_of(dead.state) == []
    assert f"journal   postgresql://{cluster_host(alive)}/postgres" in alive.fleet("status").stdout


def cluster_host(up: Up) -> str:
    return up.place.partition("host=")[2].partition("&")[0].replace("%2F", "/")


@pytest.mark.devnet
@pytest.mark.jail
async def test_a_restart_of_the_server_in_mid_run_disturbs_neither(
    pair: tuple[Up, Up], cluster: Cluster
) -> None:
    for name in ("qa-0", "qa-1", "qa-2", "qa-3"):
        for host in pair:
            host.drop(name, persona(name, CREATE, *[FETCH] * 10, trigger='continuous = "1s"'))
    _start(pair, stalled_s=LONG_S)
    await pair[0].until(lambda: all(host.minting() for host in pair), 120)
    await anyio.to_thread.run_sync(cluster.stop)
    flying = [(host, host.minting()) for host in pair]
    cluster.spawn()
    await anyio.to_thread.run_sync(cluster.wait)
    for host, run in flying:
        (end,) = await host.until(partial(host.footers, run), 90)
        assert (end["outcome"], end["calls"]) == ("done", 11)
        await host.until(partial(_more, host, _begun(host)), 90)
    assert [await host.end(host.processes[0]) for host in pair] == [0, 0]
    rows = await pair[0].runs()
    assert {(row.state, row.outcome) for row in rows} <= {
        ("ended", "done"),
        ("ended", "cancelled"),
        ("queued", ""),
    }
    assert len({row.key for row in rows}) == len(rows)
    assert not _begun(pair[0]) & _begun(pair[1])
    assert _begun(pair[0]) | _begun(pair[1]) <= {row.run_id for row in rows}
    for row in rows:
        assert not any(await pair[0].held(row.run_id))


def _more(host: Up, before: set[str]) -> bool:
    return _begun(host) > before


def _begun(host: Up) -> set[str]:
    return {path.parent.name for path in (host.state / "runs").glob("*/trajectory.jsonl")}


def _ticking(place: str, state: Path) -> subprocess.Popen[bytes]:
    state.mkdir(mode=0o700)
    command = [sys.executable, "-m", "tests.service.ticking", place, str(state), str(TICKS)]
    return subprocess.Popen(command, cwd=ROOT, env={"PATH": os.environ["PATH"]})


async def test_each_tick_is_one_run_of_one_of_many_daemons(cluster: Cluster, tmp_path: Path) -> None:
    place = cluster.place()
    processes = [_ticking(place, tmp_path / me) for me in ("one", "two")]
    try:
        async with await Journal.open(place) as journal:
            with anyio.fail_after(200):
                while (await journal.outcomes()).get("done", 0) < TICKS:
                    assert [process.poll() for process in processes] == [None, None]
                    await anyio.sleep(0.3)
            rows = await journal.runs(limit=9999)
        for process in processes:
            process.send_signal(signal.SIGTERM)
            assert await anyio.to_thread.run_sync(process.wait, 30) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert Counter(row.key for row in rows) == {f"qa-{n % 20}@registered:{n}:0": 1 for n in range(TICKS)}
    assert {row.state for row in rows} == {"ended"}
    began = [
        len((tmp_path / me / "events.jsonl").read_text().split('"trigger.fired"')) - 1
        for me in ("one", "two")
    ]
    assert sum(began) == TICKS
    shares = Counter(row.daemon for row in rows)
    assert len(shares) == 2
    assert min(shares.values()) > TICKS / 20
    assert cluster.do("SELECT count(*) FROM procrastinate_jobs", place) == [(0,)]
