"""A real Docker engine for the tests: its own socket and folders, and nothing of it left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException

_START_S, _END_S = 30.0, 20.0


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """A running engine: `socket` is a URL for the SDK and for `[jail] socket`, `pid` that of dockerd."""

    socket: str
    pid: int
    folder: Path

    def client(self) -> docker.DockerClient:
        """A client of this engine; close it."""
        return docker.DockerClient(base_url=self.socket, version="auto")

    def kill(self) -> None:
        """SIGKILL, which its containerd does not outlive; `restarted` begins another in its place."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        own = self.folder / "exec" / "containerd"
        for stale in (self.folder / "d.pid", *own.glob("*.pid"), *own.glob("*.sock*")):
            stale.unlink()  # its successor would wait for a zombie that no one reaps

    def processes(self) -> list[int]:
        """Everything that this engine started and that still runs: containerd, shims, their children."""
        table = {pid: _seen(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
        found = {pid for pid, (_, command) in table.items() if os.fsencode(self.folder) in command}
        found |= {self.pid} & table.keys()
        while more := {pid for pid, (parent, _) in table.items() if parent in found} - found:
            found |= more
        return sorted(found)


def why_no_engine() -> str:
    """Why no engine can be started here, "" if one can: what a skipped test says."""
    if os.geteuid() != 0:
        return "an engine of our own needs root"
    missing = [name for name in ("dockerd", "containerd", "runc") if shutil.which(name) is None]
    return f"no {', '.join(missing)} (Debian: apt install docker.io)" if missing else ""


@contextmanager
def running_engine(*, inside: Sequence[str] = ()) -> Iterator[DockerEngine]:
    """Start an engine without a network; end it, what it started, its mounts and its folder.

    `inside`: a command that becomes the engine, such as `unshare`. RuntimeError with the end of its log if it
    does not answer.
    """
    folder = Path(tempfile.mkdtemp(prefix="dkr-", dir="/tmp"))  # short: a socket's path has 108 bytes
    folder.chmod(0o711)  # the group of the socket may come to it
    try:
        with _started(folder, inside) as engine:
            yield engine
    finally:
        _unmount(folder)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def restarted(engine: DockerEngine) -> Iterator[DockerEngine]:
    """Another one with the folder and the socket of one that was killed, until the end of the block."""
    with _started(engine.folder, ()) as successor:
        yield successor


@contextmanager
def _started(folder: Path, inside: Sequence[str]) -> Iterator[DockerEngine]:
    command = [*inside, *_command(folder)]
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
    engine = DockerEngine(f"unix://{folder}/d.sock", process.pid, folder)
    try:
        _wait(lambda: _answers(engine) or process.poll() is not None, _START_S)
        if process.poll() is not None or not _answers(engine):
            raise RuntimeError(f"dockerd does not answer: {_tail(folder / 'log')}")
        yield engine
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
        _end(engine)
        process.wait()


@pytest.fixture(scope="session")
def dockerd() -> Iterator[DockerEngine]:
    """One engine for every test of this process; skips with a reason where none can be started."""
    if why := why_no_engine():
        pytest.skip(why)
    with running_engine() as engine:
        yield engine


def _command(folder: Path) -> list[str]:
    return [
        *("setpriv", "--pdeathsig", "TERM"),  # a test run that is killed leaves none
        "dockerd",
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("-H", f"unix://{folder}/d.sock", "-p", str(folder / "d.pid")),
        *("--iptables=false", "--ip6tables=false", "--bridge=none"),
    ]


def _answers(engine: DockerEngine) -> bool:
    with closing(socket.socket(socket.AF_UNIX)) as trial:  # a client that cannot connect leaks its socket
        if trial.connect_ex(engine.socket.removeprefix("unix://")):
            return False
    try:
        with closing(engine.client()) as client:
            return bool(client.ping())
    except (DockerException, OSError):
        return False


def _end(engine: DockerEngine) -> None:
    """Kill until nothing is left: a shim outlives its engine, and what it ran may outlive the shim."""

    def gone() -> bool:
        for pid in (left := engine.processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left == [] or left == [engine.pid]  # a zombie until it is waited for

    _wait(gone, _END_S)


def _wait(done: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not done() and time.monotonic() < ends:
        time.sleep(0.05)


def _unmount(folder: Path) -> None:
    """The engine's overlays and network namespaces, the latest first."""
    with open("/proc/self/mountinfo") as text:
        places = [line.split()[4] for line in text]
    for place in reversed([place for place in places if place.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def _seen(pid: int) -> tuple[int, bytes]:
    """The parent and the command line of a process; (0, b"") for one that has ended."""
    try:
        stat, command = Path(f"/proc/{pid}/stat").read_text(), Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return 0, b""
    return int(stat.rpartition(")")[2].split()[1]), command


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-8:])
