"""Waiting jails: used once, replaced when dead or old, none left behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from fleet.errors import JailError
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.bwrap.spawn import spawn
from fleet.jail.jail_spec import open_shape
from fleet.jail.locate import find_bwrap
from fleet.jail.model import End, Image
from fleet.jail.pool import Pool
from fleet.jail.process import proc_stat
from fleet.jail.reap import reap_stale
from fleet.jail.running_jail import RunningJail
from tests.jail.test_conformance import IMAGE

pytestmark = [pytest.mark.anyio, pytest.mark.jail]

ECHO = b'{"do": "echo", "text": "x"}\n'


def recorded(spool: Path, *, zygotes: bool = False) -> list[int]:
    """The first processes of a spool's jails that are there; or else what these are forked from."""
    found = []
    for path in spool.glob("*.jail"):
        with suppress(OSError):
            pid = int(path.name.partition("-")[0])
            if (Path(f"/proc/{pid}/comm").read_text() == "qa-zygote\n") is zygotes:
                found.append(pid)
    return found


async def test_a_waiting_jail_is_used_once_and_replaced(tmp_path: Path) -> None:
    jail = BwrapJail(IMAGE, pool=1, spool=tmp_path)
    await jail.warm()
    [first] = recorded(tmp_path)
    assert (await jail.call(ECHO, deadline_s=5)).stdout == b"x\n"
    await jail.warm()
    [second] = recorded(tmp_path)
    assert first != second
    assert proc_stat(first) is None
    await jail.aclose()
    assert os.listdir(tmp_path) == []
    assert proc_stat(second) is None


async def test_a_dead_waiting_jail_is_replaced(tmp_path: Path) -> None:
    jail = BwrapJail(IMAGE, pool=1, spool=tmp_path)
    await jail.warm()
    [pid] = recorded(tmp_path)
    os.kill(pid, signal.SIGKILL)
    outcome = await jail.call(ECHO, deadline_s=5)
    assert (outcome.end, outcome.stdout) == (End.EXITED, b"x\n")
    await jail.aclose()


async def test_an_old_waiting_jail_is_replaced(tmp_path: Path) -> None:
    shape = open_shape(IMAGE, bwrap=find_bwrap())
    pool = Pool(lambda: spawn(shape, tmp_path), 1, max_age_s=0)
    await pool.filled()
    [old] = recorded(tmp_path)
    live = await pool.take()
    assert old not in recorded(tmp_path)
    await live.end()
    await pool.aclose()
    shape.close()


@pytest.mark.parametrize("waiting", [1, 0], ids=["a waiting one", "one of its own"])
async def test_a_call_that_is_cancelled_before_its_jail_is_awake_leaves_none(
    tmp_path: Path, waiting: int
) -> None:
    shape = open_shape(IMAGE, bwrap=find_bwrap())
    asleep = anyio.Event()

    async def made() -> RunningJail:
        live = await spawn(shape, tmp_path)
        asleep.set()
        return live

    pool = Pool(made, waiting)
    await pool.filled()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.take)
        await asleep.wait()
        tasks.cancel_scope.cancel()
    await pool.aclose()
    shape.close()
    assert os.listdir(tmp_path) == []


async def test_a_jail_that_is_killed_during_its_start_is_made_again_once(tmp_path: Path) -> None:
    shape = open_shape(IMAGE, bwrap=find_bwrap())
    made: list[int] = []
    deadly = 1

    async def one() -> RunningJail:
        live = await spawn(shape, tmp_path)
        made.append(len(made))
        if len(made) <= deadly:
            await live.outer.end()
        return live

    pool = Pool(one, 0)
    live = await pool.take()
    assert (len(made), live.alive()) == (2, True)
    await live.end()
    made.clear()
    deadly = 2
    with pytest.raises(JailError, match="ended before its request"):
        await pool.take()
    assert (len(made), recorded(tmp_path)) == (2, [])
    await pool.aclose()
    shape.close()


async def test_a_closed_backend_refuses(tmp_path: Path) -> None:
    jail = BwrapJail(IMAGE, pool=0, spool=tmp_path)
    await jail.aclose()
    with pytest.raises(JailError, match="closed"):
        await jail.call(ECHO, deadline_s=5)


def test_jails_over_a_host_directory_are_not_pooled(tmp_path: Path) -> None:
    with pytest.raises(JailError, match="pooled"):
        BwrapJail(Image(), pool=1, spool=tmp_path, work=tmp_path)


DAEMON = """
import asyncio, sys
from pathlib import Path
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.running_jail import RunningJail
from fleet.jail.model import Image

async def main(spool):
    image = Image(guest=f"{sys.argv[2]}.lingers", mounts=((spool.parent / "guests", sys.argv[2]),))
    jail = BwrapJail(image, pool=3, spool=spool)
    print("up", flush=True)
    await jail.warm()
    await jail.call(b'{"do": "linger"}' + b" " * 10, deadline_s=60)

asyncio.run(main(Path(sys.argv[1])))
"""


def jails(first: int) -> list[int]:
    """Host pids of jails of one of twelve guests, which is on their command lines and their zygote's."""
    marks = [f"m{first + step}.lingers".encode() for step in range(12)]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if any(mark in command for mark in marks):
                found.append(int(entry.name))
    return found


@pytest.mark.crash
def test_no_jail_outlives_a_killed_daemon(tmp_path: Path) -> None:
    """T03: killed at 12 moments from before the first jail to after the third."""
    first = 10_000 + secrets.randbelow(10_000_000)
    guests, spool = tmp_path / "guests", tmp_path / "spool"
    guests.mkdir()
    spool.mkdir()
    seen = 0
    (guests / "lingers.py").write_text("from sandbox.start.selfcheck import main\n")
    for step in range(12):
        arguments = [str(spool), f"m{first + step}"]
        daemon = subprocess.Popen(
            [sys.executable, "-c", DAEMON, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert daemon.stdout
        with daemon.stdout:
            assert daemon.stdout.readline() == "up\n"
            time.sleep(step * 0.04)
            seen += len(jails(first))
            daemon.kill()
            daemon.wait()
    time.sleep(1)  # one that was still being made must have had the time to show
    assert (seen > 0, jails(first)) == (True, [])
    reap_stale(spool)
    assert os.listdir(spool) == []
