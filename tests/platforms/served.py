"""A program of ours that listens on a port: started, killed, paused and started again, always by its pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import SystemRandom
from types import TracebackType
from typing import Self

import anyio

from fleet.files import ROOT
from fleet.jail.process import proc_stat

TETHER = ROOT / "fleet" / "devnet" / "parent_death.py"
START_S, END_S, POLL_S = 60.0, 10.0, 0.01
PORTS = range(20_000, 30_000)
"""Below the kernel's own choice, so that a port stays free while its program is down."""


class NotServed(Exception):
    """The program ended, or did not listen in time; the message ends with what it said."""


def free_port() -> int:
    """A port that nothing listens on now."""
    while True:
        port = SystemRandom().choice(PORTS)
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def tethered(*words: str | Path) -> list[str]:
    """The command line of a program that gets SIGTERM when this process ends, however it ends."""
    return [sys.executable, "-I", "-S", "-B", str(TETHER), str(os.getpid()), *map(str, words)]


@dataclass(slots=True)
class Served:
    """Entered, `words` runs and listens on `port` of loopback; left, it has ended."""

    words: Sequence[str]
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "not running"
        return self.process.pid

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            self.end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    async def start(self) -> None:
        """Until it listens, on the same port every time. Raises NotServed."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 - milliseconds
                tethered(*self.words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        with anyio.move_on_after(START_S):
            while self.process.poll() is None:
                with suppress(OSError):
                    async with await anyio.connect_tcp("127.0.0.1", self.port):
                        return
                await anyio.sleep(POLL_S)
        said = self.log.read_text("utf-8", "replace")[-2_000:]
        raise NotServed(f"{' '.join(self.words[:4])}: status {self.process.poll()}: {said}")

    def kill(self) -> None:
        """SIGKILL: connections are refused from now on."""
        assert self.process is not None, "not running"
        self.process.kill()
        self.process.wait()
        self.process = None

    async def restart(self, down_s: float = 0.0) -> None:
        """Killed, gone for a while, and back on its port."""
        self.kill()
        await anyio.sleep(down_s)
        await self.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """SIGSTOP: the kernel goes on accepting connections, nothing answers; SIGCONT at the end."""
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            while (stat := proc_stat(pid)) and stat.state != "T":
                time.sleep(POLL_S)
            yield
        finally:
            if self.process is not None:
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """Asks, waits, insists; nothing when it is down."""
        process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@asynccontextmanager
async def restarting(served: Served, *, every_s: float, down_s: float = 1.0) -> AsyncIterator[None]:
    """Kills it every so often and starts it again after a while; at the end it is up."""

    async def again() -> None:
        while True:
            await anyio.sleep(every_s)
            with anyio.CancelScope(shield=True):
                await served.restart(down_s)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(again)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


@contextmanager
def burning(count: int) -> Iterator[list[int]]:
    """Pids of `count` processes that each keep a core busy until the end."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            processes.append(subprocess.Popen(tethered(sys.executable, "-I", "-S", "-c", "while True: pass")))
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
