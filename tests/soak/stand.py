"""What a soak stands on: a devnet, a line to its node that can be spoilt, one state directory, one daemon."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import httpx

from fleet.chain.keys import address_of, load_key
from fleet.chain.node.rpc import Rpc
from fleet.clock import SystemClock
from fleet.config import Platform, parse
from fleet.devnet.defects import ALL_IDS
from fleet.devnet.devnet import Devnet
from fleet.events.daemon_events import DaemonEvent
from fleet.files import ROOT
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.jail.process import proc_stat
from tests.feed import read_feed
from tests.soak.cast import cast
from tests.soak.line import Line

DISK = 128 << 20
"""Bytes of the small disk under the state directory, where one can be had."""
END_S = 60.0


class Complaint(Exception):
    """The soak found something."""


@dataclass
class Stand:
    """Entered, everything runs. `chance` decides everything that is left to chance."""

    folder: Path
    chance: random.Random
    small_disk: bool
    hold_s: float
    process: subprocess.Popen[bytes] | None = None
    killed: int = 0
    windows: list[tuple[str, int, int]] = field(default_factory=list)
    """When dial or STOP held it back: which, and the numbers of the effects before and at the end of it."""
    state: Path = field(init=False)
    platform: Platform = field(init=False)
    rpc: Rpc = field(init=False)
    devnet: Devnet = field(init=False)
    line: Line = field(init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        self.state = self.folder / "state"
        for path in (self.personas, self.config.parent, self.state):
            path.mkdir(mode=0o700)
        async with AsyncExitStack() as stack:
            if self.small_disk:
                mount(self.state)
                stack.callback(unmount, self.state)
            keys = self.state / "keys"
            devnet = Devnet(self.folder / "devnet", keys=keys, defects=ALL_IDS)
            self.devnet = await stack.enter_async_context(devnet)
            self.line = await stack.enter_async_context(Line(self.devnet.chain.url, self.chance))
            self.rpc = await stack.enter_async_context(Rpc(self.devnet.chain.url))
            text = self.devnet.profile.read_text("utf-8").replace(self.devnet.chain.url, self.line.url)
            (self.state / "devnet").mkdir()
            (self.state / "devnet" / "devnet.toml").write_text(text)
            self.platform = parse(Platform, text, file="devnet.toml")
            self.config.write_text("concurrency = 3\n")
            self.step(0)
            cast(self.personas)
            self.turn(Rung.EXERCISE)
            self.start()
            stack.push_async_callback(self.end)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._stack.aclose()

    @property
    def personas(self) -> Path:
        return self.folder / "personas"

    @property
    def config(self) -> Path:
        return self.folder / "config" / "fleet.toml"

    @property
    def log(self) -> Path:
        return self.folder / "up.log"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def address(self, role: str) -> str:
        return address_of(load_key(self.state / "keys" / role))

    def turn(self, rung: Rung) -> None:
        write_dial(self.state, rung, "the soak", "soak", SystemClock())

    def step(self, seconds: float) -> None:
        """Set the daemon's clock on the wall."""
        draft = self.folder / "step.draft"
        draft.write_text(str(seconds))
        draft.rename(self.folder / "step")

    def start(self) -> None:
        """The daemon, in a process of its own."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.state),
            "STATE_DIRECTORY": str(self.state),
            "QA_FLEET_EXPLORE": "false",
            "CONFIGURATION_DIRECTORY": str(self.config.parent),
            "PYTHONPATH": str(ROOT),
        }
        words = (str(self.personas), str(self.folder / "step"))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("daemon.py")), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def alive(self) -> None:
        """Complaint when the daemon is gone though nobody killed it."""
        if self.process is None or self.process.poll() is not None:
            code = self.process.returncode if self.process else None
            raise Complaint(f"I8: the daemon ended by itself (status {code}):\n{self.words(3000)}")

    def words(self, count: int) -> str:
        """The last of what the daemon said."""
        return self.log.read_text("utf-8", "replace")[-count:]

    async def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.kill()
        await anyio.to_thread.run_sync(self.process.wait)
        self.killed += 1

    async def end(self) -> int:
        """SIGTERM, until it has ended; a Complaint when that takes for ever."""
        process, self.process = self.process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            await anyio.to_thread.run_sync(process.wait, END_S)
        if process.poll() is None:
            process.kill()
            process.wait()
            raise Complaint(f"SIGTERM did not end the daemon within {END_S:.0f} s")
        return process.returncode

    async def ready(self) -> dict[str, Any] | None:
        """What /readyz says when it says yes; None otherwise."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.state / "fleet.sock"))
        try:
            async with httpx.AsyncClient(transport=transport, timeout=5) as client:
                answer = await client.get("http://fleet/readyz")
        except httpx.HTTPError:
            return None
        return dict(answer.json()) if answer.status_code == 200 else None

    def events(self) -> list[DaemonEvent]:
        return list(read_feed(self.state / "events.jsonl"))

    @asynccontextmanager
    async def window(self, kind: str, quiet_s: float) -> AsyncIterator[None]:
        """A time, from `quiet_s` after its beginning, in which dial or STOP hold the daemon back."""
        await anyio.sleep(quiet_s)
        first = self._effects()
        yield
        self.windows.append((kind, first, self._effects()))

    def _effects(self) -> int:
        with closing(sqlite3.connect(f"file:{self.state}/fleet.db?mode=ro", uri=True, timeout=60)) as base:
            return int(base.execute("select coalesce(max(effect_id), 0) from effects").fetchone()[0])

    async def until(self, check: Callable[[], Awaitable[Any]], seconds: float, what: str) -> Any:
        """What `check` says once it says something; Complaint when it does not, or the daemon ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.alive()
            if found := await check():
                return found
            await anyio.sleep(0.25)
        raise Complaint(f"{what}: not within {seconds:.0f} s; the daemon said:\n{self.words(3000)}")

    def processes(self) -> dict[int, tuple[int, str]]:
        """Processes that name this stand's state: pid to parent and command line."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    if str(self.state) in line or str(self.personas) in line:
                        stat = proc_stat(int(entry.name))
                        found[int(entry.name)] = (stat.parent if stat else 0, line)
        return found


def mount(path: Path) -> None:
    """A small disk of its own; the caller is in a mount namespace that ends with it."""
    options = f"size={DISK},mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "soak", str(path)], check=True)


def unmount(path: Path) -> None:
    subprocess.run(["umount", "--lazy", str(path)], check=True)
