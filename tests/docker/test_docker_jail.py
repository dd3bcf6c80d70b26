"""One container per call: what it is like inside, what it is used for, and that none is left."""

from __future__ import annotations

import json
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import anyio
import pytest

from fleet.errors import JailError
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail
from fleet.jail.docker.start import peer_pid
from fleet.jail.jail_spec import UNPRIVILEGED
from fleet.jail.model import End, Image, Limits
from fleet.jail.process import exit_code, proc_stat
from fleet.jail.rmtree import rmtree
from tests.docker.jails import ECHO, FLOOD, containers, jail, jailed, volumes
from tests.dockerd import DockerEngine

pytestmark = [pytest.mark.anyio, pytest.mark.jail]

LIMITS = Limits(box=8 << 20, tmp=4 << 20, shm=2 << 20, inodes=20_000)
INSIDE = Image(mounts=((Path(__file__).parent / "guests", "guests"),), guest="guests.inside", limits=LIMITS)


def recorded(spool: Path) -> list[int]:
    return [json.loads(path.read_text())["pid"] for path in spool.glob("*.jail")]


async def test_what_a_container_is_like_inside(dockerd: DockerEngine, tmp_path: Path) -> None:
    used = jail(dockerd, tmp_path, image=INSIDE)
    outcome = await used.call(b"{}\n", deadline_s=10)
    await used.aclose()
    assert (outcome.end, outcome.code, outcome.stderr) == (End.EXITED, 0, b"")
    facts = json.loads(outcome.stdout)
    library = {"LD_LIBRARY_PATH"} & set(facts["environ"])
    assert facts["environ"] == sorted({"HOME", "LANG", "PATH", "LC_CTYPE"} & set(facts["environ"]) | library)
    assert {"HOME", "LANG", "PATH"} <= set(facts["environ"])
    assert facts["user"] == [UNPRIVILEGED, UNPRIVILEGED, [UNPRIVILEGED]]
    assert (facts["pid"], facts["filters"], facts["at"], facts["sys"]) == (1, "2", "/box", [])
    assert facts["places"] == {
        "/box": [UNPRIVILEGED, "0o700", 8 << 20, 21_024],
        "/tmp": [UNPRIVILEGED, "0o1777", 4 << 20, 21_024],
        "/dev/shm": [UNPRIVILEGED, "0o1777", 2 << 20, 21_024],
    }


async def test_what_the_engine_holds_it_to(dockerd: DockerEngine, tmp_path: Path) -> None:
    used = jail(dockerd, tmp_path, pool=1)
    await used.warm()
    [container] = containers(dockerd)
    host = container.attrs["HostConfig"]
    await used.aclose()
    assert host["CapDrop"] == ["ALL"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["Privileged"]) == ("none", True, False)
    assert (host["Memory"], host["MemorySwap"]) == (host["MemorySwap"], (1536 + 128 + 64 + 16 + 64) << 20)
    assert (host["PidsLimit"], host["NanoCpus"]) == (128, min(2, os.cpu_count() or 1) * 10**9)
    assert "no-new-privileges" in host["SecurityOpt"]
    assert (host["LogConfig"]["Type"], host["IpcMode"]) == ("none", "none")
    assert {mount["Target"] for mount in host["Mounts"] if not mount["ReadOnly"]} == set()
    assert (containers(dockerd), volumes(dockerd), os.listdir(tmp_path)) == ([], [], [])


async def test_a_host_directory_is_written_to_and_removed(dockerd: DockerEngine, tmp_path: Path) -> None:
    work, spool = tmp_path / "work", tmp_path / "spool"
    work.mkdir(mode=0o700)
    spool.mkdir()
    used = jail(dockerd, spool, image=INSIDE, work=work)
    outcome = await used.call(b"{}\n", deadline_s=10)
    await used.aclose()
    assert outcome.code == 0, outcome.stderr
    assert (work / "report").read_text() == "report"
    assert (work / "report").stat().st_uid == UNPRIVILEGED
    rmtree(tmp_path, "work")
    assert os.listdir(tmp_path) == ["spool"]


async def test_a_host_directory_by_a_link_is_refused(dockerd: DockerEngine, tmp_path: Path) -> None:
    (tmp_path / "work").symlink_to("/etc")
    with pytest.raises(JailError, match="cannot mount"):
        jail(dockerd, tmp_path, work=tmp_path / "work")
    with pytest.raises(JailError, match="pooled"):
        jail(dockerd, tmp_path, work=tmp_path, pool=1)


@pytest.mark.parametrize("do", [{"do": "leave", "code": 137}, {"do": "crash", "signal": 11}])
async def test_the_kernel_and_the_engine_say_the_same_of_an_end(
    dockerd: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, do: dict[str, object]
) -> None:
    used = jail(dockerd, tmp_path)
    ends = []
    for kernel in (exit_code, lambda _: None):
        monkeypatch.setattr("fleet.jail.docker.start.exit_code", kernel)
        outcome = await used.call(json.dumps(do).encode() + b"\n", deadline_s=10)
        ends.append((outcome.end, outcome.code))
    await used.aclose()
    assert ends == [(End.EXITED, 137) if "code" in do else (End.SIGNALED, 11)] * 2


async def test_a_waiting_container_is_used_once_and_replaced(dockerd: DockerEngine, tmp_path: Path) -> None:
    used = jail(dockerd, tmp_path, pool=1)
    await used.warm()
    [first] = recorded(tmp_path)
    assert (await used.call(ECHO, deadline_s=5)).stdout == b"x\n"
    await used.warm()
    [second] = recorded(tmp_path)
    assert first != second
    assert proc_stat(first) is None
    os.kill(second, signal.SIGKILL)  # one that died while it waited is replaced too
    assert (await used.call(ECHO, deadline_s=5)).stdout == b"x\n"
    await used.aclose()
    assert (containers(dockerd), os.listdir(tmp_path)) == ([], [])


async def test_a_class_of_limits_has_its_own_containers(dockerd: DockerEngine, tmp_path: Path) -> None:
    used = jail(dockerd, tmp_path, image=replace(INSIDE, limits=Limits(box=8 << 20)))
    outcome = await used.call(b"{}\n", deadline_s=10, resources="browser")
    await used.aclose()
    assert json.loads(outcome.stdout)["places"]["/box"][2] == 128 << 20


async def test_a_fleet_that_cannot_see_its_containers_uses_them_all_the_same(
    dockerd: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.jail.docker.start.peer_pid", lambda *_: 0)
    used = jail(dockerd, tmp_path, pool=1)
    await used.warm()
    assert os.listdir(tmp_path) == []
    outcome = await used.call(ECHO, deadline_s=5)
    assert (outcome.end, outcome.stdout) == (End.EXITED, b"x\n")
    outcome = await used.call(b'{"do": "sleep"}\n', deadline_s=0.3)
    assert outcome.end is End.TIMEOUT
    outcome = await used.call(FLOOD, deadline_s=10)
    assert outcome.end is End.FLOOD
    await used.aclose()
    assert (containers(dockerd), jailed(dockerd)) == ([], [])


async def test_an_ordinary_daemon_that_may_not_signal_its_containers_ends_them(
    dockerd: DockerEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.jail.docker.start.kill", Mock(side_effect=PermissionError))
    used = jail(dockerd, tmp_path)
    outcome = await used.call(FLOOD, deadline_s=10)
    assert outcome.end is End.FLOOD
    assert jailed(dockerd) == []
    await used.aclose()
    assert (containers(dockerd), os.listdir(tmp_path)) == ([], [])


async def test_a_start_that_is_cancelled_leaves_none(dockerd: DockerEngine, tmp_path: Path) -> None:
    used = jail(dockerd, tmp_path)
    for seconds in (0.0, 0.03, 0.1, 0.2):
        with anyio.move_on_after(seconds):
            await used.call(ECHO, deadline_s=5)
    await used.aclose()
    assert (containers(dockerd), jailed(dockerd), os.listdir(tmp_path)) == ([], [], [])


def test_another_user_at_the_door_is_refused() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        assert peer_pid(ours, os.getuid()) == os.getpid()
        with pytest.raises(JailError, match=f"user {os.getuid()} came in"):
            peer_pid(ours, os.getuid() + 1)
        if os.getuid() == 0:
            with pytest.raises(JailError, match="user 0 came in"):
                peer_pid(ours, None)


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        (EngineChoice(socket="unix:///nowhere/d.sock"), "No such file"),
        (EngineChoice(image="qa-fleet-missing:1"), "no image 'qa-fleet-missing:1'"),
        (EngineChoice(runtime="missing"), "no runtime 'missing'"),
    ],
)
async def test_what_is_not_there_is_named(
    dockerd: DockerEngine, tmp_path: Path, choice: EngineChoice, problem: str
) -> None:
    engine = replace(choice, socket=choice.socket or dockerd.socket)
    used = DockerJail(INSIDE, pool=0, spool=tmp_path, engine=engine)
    with pytest.raises(JailError, match=problem) as caught:
        await used.call(b"{}\n", deadline_s=5)
    assert caught.value.remedy
    await used.aclose()
    assert os.listdir(tmp_path) == []


def test_an_engine_of_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    with pytest.raises(JailError, match="not a unix socket"):
        DockerJail(INSIDE, pool=0, spool=tmp_path, engine=EngineChoice())
