"""Whoever dies, the daemon, the engine or the network between them: no container and no process is left."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from fleet.errors import JailError
from fleet.jail.battery.attempts import PROBES
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.reap import SPOOL, describe_containers, owner_labels, reap_containers
from fleet.jail.docker.runtime_helpers import end_helpers, helpers
from fleet.jail.model import End
from fleet.jail.reap import reap_stale
from tests.docker.jails import ECHO, FLOOD, containers, jail, jailed, standing, volumes
from tests.dockerd import DockerEngine, running_engine

pytestmark = [pytest.mark.anyio, pytest.mark.jail]


def choice(engine: DockerEngine) -> EngineChoice:
    return EngineChoice(socket=engine.socket)


async def awake(engine: DockerEngine) -> None:
    """Wait until a jail's guest runs beside its first process, and the engine has said that it started."""
    for _ in range(500):
        if len(jailed(engine)) > 1 and all(one.status == "running" for one in containers(engine)):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("no jail started")


async def removed(engine: DockerEngine) -> None:
    """Wait until an engine that was disturbed has removed what it was told to."""
    for _ in range(600):
        if not containers(engine):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"still there: {containers(engine)}")


def shim(engine: DockerEngine) -> int:
    """The process that holds the one container there is."""
    [container] = containers(engine)
    [pid] = helpers([str(container.id)])
    return pid


def containerd(engine: DockerEngine) -> int:
    [pid] = [pid for pid in engine.processes() if Path(f"/proc/{pid}/comm").read_text() == "containerd\n"]
    return pid


async def test_a_killed_engine_costs_the_answer_and_leaves_no_process(
    dockerd: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dockerd` is asked for so that this skips where no engine can be started; this one gets killed."""
    monkeypatch.setattr("fleet.jail.docker.start.exit_code", lambda _: None)  # a kernel before 6.15
    with running_engine() as engine:
        used = jail(engine, tmp_path)

        @asynccontextmanager
        async def egress(listener: socket.socket) -> AsyncIterator[None]:
            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readline()
                os.kill(engine.pid, signal.SIGKILL)
                await asyncio.sleep(0.1)
                writer.write(b"broker")
                writer.close()

            async with await asyncio.start_server(answer, sock=listener):
                yield

        outcome = await used.call(b'{"do": "connect"}\n', deadline_s=20, egress=egress)
        assert (outcome.end, outcome.code, outcome.stdout) == (End.LOST, 0, b"broker\n")
        assert jailed(engine) == []
        with pytest.raises(JailError, match="engine did not"):
            await used.call(ECHO, deadline_s=5)
        await used.aclose()
        assert os.listdir(tmp_path) == []
        with pytest.raises(JailError, match="engine did not list") as caught:
            await reap_containers(choice(engine), tmp_path)
        assert "start Docker" in caught.value.remedy


async def test_a_silent_engine_does_not_keep_a_jail_alive(
    dockerd: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = jail(dockerd, tmp_path, pool=1)
    await used.warm()
    monkeypatch.setattr("fleet.jail.docker.engine._CALL_S", 1.0)
    os.kill(dockerd.pid, signal.SIGSTOP)
    try:
        outcome = await used.call(FLOOD, deadline_s=10)
        assert outcome.end is End.FLOOD
        assert jailed(dockerd) == []
    finally:
        os.kill(dockerd.pid, signal.SIGCONT)
    monkeypatch.undo()
    await used.aclose()
    assert (containers(dockerd), os.listdir(tmp_path)) == ([], [])  # what was given up is tried again


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])
async def test_a_killed_shim_is_no_answer(dockerd: DockerEngine, tmp_path: Path, seen: bool) -> None:
    """PID 1 dies with the shim, and at the latest at the deadline; its engine need not notice."""
    used = jail(dockerd, tmp_path)
    calling = asyncio.ensure_future(used.call(b'{"do": "sleep"}\n', deadline_s=20))
    await awake(dockerd)
    held, watcher = shim(dockerd), containerd(dockerd)
    if not seen:
        os.kill(watcher, signal.SIGSTOP)
    try:
        os.kill(held, signal.SIGKILL)
        outcome = await calling
        assert (outcome.end, outcome.stdout) in ((End.LOST, b""), (End.TIMEOUT, b""))
        assert jailed(dockerd) == []
    finally:
        os.kill(watcher, signal.SIGCONT)
    await used.aclose()
    await removed(dockerd)
    assert os.listdir(tmp_path) == []


async def test_the_reaper_takes_only_what_dead_daemons_left(dockerd: DockerEngine, tmp_path: Path) -> None:
    used = jail(dockerd, tmp_path, pool=1)
    await used.warm()
    [living] = containers(dockerd)
    dead = {**owner_labels(tmp_path), "qa-fleet.owner": "1", "qa-fleet.owner-start": "1"}
    with closing(dockerd.client()) as client:
        image = living.image
        assert image is not None
        for name, labels in (
            ("never-started", dead),
            ("of-another-boot", {**owner_labels(tmp_path), "qa-fleet.boot": "another"}),
            ("of-a-spool-that-is-gone", {**dead, SPOOL: "1:/elsewhere"}),
            ("of-another-container", {**dead, SPOOL: "1:/elsewhere", "qa-fleet.pids": "pid:[1]"}),
            ("of-another-machine", {**dead, SPOOL: "1:/elsewhere", "qa-fleet.boot": "another"}),
            ("of-a-living-fleet", {**owner_labels(tmp_path), SPOOL: "1:/elsewhere"}),
            ("of-others", {}),
        ):
            client.containers.create(image, ["/bin/true"], name=name, labels=labels, network_mode="none")
        told = await describe_containers(choice(dockerd))
        assert told.startswith(
            "2 of living fleets; 2 of dead ones, which the next start removes; 3 of another"
        )
        assert await reap_containers(choice(dockerd), tmp_path) == 3
        kept = {"of-another-container", "of-another-machine", "of-a-living-fleet", "of-others"}
        assert {str(c.name) for c in containers(dockerd)} == kept | {str(living.name)}
        for name in kept:
            client.containers.get(name).remove()
    assert (await used.call(ECHO, deadline_s=5)).stdout == b"x\n"
    await used.aclose()


def test_what_a_runtime_left_is_ended_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.jail.docker.runtime_helpers._BY_ITSELF_S", 0.1)
    ours, others = secrets.token_hex(32), secrets.token_hex(32)
    named = [("runsc-gofer", ours), ("containerd-shim-runc-v2", others), ("notes-about", ours)]
    script = "import sys, time; print(flush=True); time.sleep(60)"
    started = [
        subprocess.Popen([name, "-c", script, container], executable=sys.executable, stdout=subprocess.PIPE)
        for name, container in named
    ]
    try:
        for process in started:
            assert process.stdout
            with process.stdout:
                process.stdout.readline()
        assert helpers([]) == []
        assert end_helpers([ours]) == 1
        assert started[0].wait(5) == -signal.SIGKILL
        assert [process.poll() for process in started[1:]] == [None, None]
    finally:
        for process in started:
            process.kill()
            process.wait()


DAEMON = """
import asyncio, sys
from pathlib import Path
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail
from fleet.jail.model import Image

async def main(spool, socket):
    image = Image(mounts=((Path(sys.argv[3]), "probes"),), guest="probes.acts")
    jail = DockerJail(image, pool=2, spool=spool, engine=EngineChoice(socket=socket))
    print("up", flush=True)
    await jail.call(b'{"do": "linger"}', deadline_s=60)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""
QUIET_S = 2.0


def _left(engine: DockerEngine) -> list[str]:
    """What still runs once no jail has been seen for a while, or after 20 s.

    One look is not enough: the engine goes on starting what it was asked for, and such a jail is seen after
    the others have ended. It comes to a door where no one waits, and ends.
    """
    start = seen = time.monotonic()
    left: list[int] = []
    while time.monotonic() - start < 20 and time.monotonic() - seen < QUIET_S:
        if left := jailed(engine):
            seen = time.monotonic()
        time.sleep(0.05)
    return [standing(pid) for pid in left]


MOMENTS = int(os.environ.get("JAIL_KILLS", "4"))
"""How often the daemon is killed; the longest moment is after the third container."""


@pytest.mark.crash
def test_no_container_outlives_a_killed_daemon(dockerd: DockerEngine, tmp_path: Path) -> None:
    for moment in range(MOMENTS):
        daemon = subprocess.Popen(
            [sys.executable, "-c", DAEMON, str(tmp_path), dockerd.socket, str(PROBES)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert daemon.stdout
        with daemon.stdout:
            assert daemon.stdout.readline() == "up\n"
            time.sleep(0.05 + moment * 1.2 / MOMENTS)
            daemon.kill()
            daemon.wait()
    assert _left(dockerd) == []
    assert containers(dockerd)
    reap_stale(tmp_path)
    asyncio.run(reap_containers(choice(dockerd), tmp_path))
    assert (containers(dockerd), volumes(dockerd), os.listdir(tmp_path)) == ([], [], [])
