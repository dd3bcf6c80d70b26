"""`fleet up` as a real process over a real devnet that the tests of a module share."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.chain.keys import address_of, load_key
from fleet.chain.names import Names
from fleet.chain.node.rpc import Rpc
from fleet.clock import SystemClock
from fleet.config import Platform, parse
from fleet.devnet.devnet import Devnet
from fleet.devnet.node import fund
from fleet.events.daemon_events import DaemonEvent
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.store.journal import Journal
from fleet.store.rows import RunRow
from tests.cli_process import Process, run_fleet, start_fleet
from tests.feed import read_feed

FETCH = '{ tool = "qa_fetch", args = { url = "{site}/llms.txt" } }'
CREATE = '{ tool = "qa_create", args = { name = "{name}" } }'


def persona(name: str, *steps: str, trigger: str = 'every = "1s"', times: int = 1) -> str:
    """The text of a small persona that is happy with whatever it sees."""
    probes = "".join(
        _probe(name, n, ", ".join(steps).replace("llms.txt", f"llms.txt?n={n}")) for n in range(times)
    )
    return (
        f'+++\nname = "{name}"\nsurface = "ux"\ntools = ["qa_create", "qa_fetch"]\n'
        f"triggers = [{{ {trigger} }}]\n"
        f'budget = {{ calls = 60, writes = 30, wall = "2m" }}\n{probes}+++\nA test.\n'
    )


def _probe(name: str, n: int, steps: str) -> str:
    return (
        f'[[probe]]\nid = "look-{n}"\nseverity = "low"\nsteps = [{steps}]\n'
        f'expect = \'result.ok || result.error != "{n}"\'\nfinding = "never seen: {name} {n}"\n'
    )


LONG = persona("qa-long", CREATE, *[FETCH] * 15, trigger='continuous = "1s"', times=3)
"""Mints a name at once and goes on for several seconds."""


def processes_of(state: Path) -> list[str]:
    """Command lines of processes that name this state directory, this one excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if str(state) in line:
                    found.append(line)
    return found


def whole(path: Path) -> list[str]:
    """The lines of a file that are written to the end."""
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@dataclass
class Up:
    """One state directory, its persona folder, and the daemons that were started over it."""

    state: Path
    devnet: Devnet
    processes: list[Process] = field(default_factory=list)
    place: str = ""
    """URL of the journal, where it is not in the state directory."""

    @property
    def personas(self) -> Path:
        return self.state.parent / "personas"

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.state),
            "STATE_DIRECTORY": str(self.state),
            "QA_FLEET_EXPLORE": "false",
            "CONFIGURATION_DIRECTORY": str(self.state.parent / "config"),
        } | more

    def start(self, *words: str, **environment: str) -> Process:
        """`fleet up` in the background; its stderr goes to `up.log` beside the state directory."""
        words = ("up", "--personas", str(self.personas), *words)
        with (self.state.parent / "up.log").open("ab") as log:
            process = start_fleet(
                *words, env=self.environment(**environment), out=log.fileno(), err=log.fileno()
            )
        self.processes.append(process)
        return process

    def spawn(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        """A program of the tests instead of the fleet's command."""
        with (self.state.parent / "up.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(**environment),
            )
        self.processes.append(process)
        return process

    def fleet(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_fleet(*words, timeout=60, env=self.environment())

    def log(self) -> str:
        return (self.state.parent / "up.log").read_text()

    def drop(self, name: str, text: str) -> None:
        """Put a persona file in the folder, whole."""
        (self.personas / f".{name}.tmp").write_text(text)
        (self.personas / f".{name}.tmp").rename(self.personas / f"{name}.md")

    def told(self, kind: str) -> list[Any]:
        return [event for event in self.events() if event.type == kind]

    def events(self) -> list[DaemonEvent]:
        return list(read_feed(self.state / "events.jsonl"))

    async def until(self, check: Callable[[], Any], seconds: float = 60) -> Any:
        """What `check` says once it says something; the daemon's own words when it does not."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := check():
                return found
            await anyio.sleep(0.05)
        raise AssertionError(f"nothing happened within {seconds} s; the daemon said:\n{self.log()[-3000:]}")

    async def runs(self) -> list[RunRow]:
        async with await Journal.open(self.place or self.state / "fleet.db") as journal:
            return await journal.runs()

    def minting(self) -> str:
        """A run in flight that has minted a name; "" while there is none."""
        for path in (self.state / "runs").glob("*/trajectory.jsonl"):
            lines = [json.loads(line) for line in whole(path)]
            kinds = [line["type"] for line in lines]
            made = [line for line in lines if line.get("tool") == "qa_create" and "result" in line]
            if made and "footer" not in kinds:
                return path.parent.name
        return ""

    async def minted(self, seconds: float = 60) -> str:
        """Waits for a run that has minted a name; the run's id."""
        return str(await self.until(self.minting, seconds))

    async def held(self, run: str) -> list[str]:
        """Owners of the names that a run recorded; "" for one that is free."""
        profile = parse(Platform, self.devnet.profile.read_text(), file="devnet.toml")
        place = self.place or self.state / "fleet.db"
        async with await Journal.open(place) as journal, Rpc(profile.chain.rpc) as rpc:
            names = Names(rpc, profile.chain.diamond)
            return [await names.owner_of_name(e.ref) for e in await journal.effects(run, kinds=["name"])]

    def footers(self, run: str) -> list[dict[str, Any]]:
        lines = whole(self.state / "runs" / run / "trajectory.jsonl")
        return [event for event in map(json.loads, lines) if event["type"] == "footer"]

    async def end(self, process: Process, number: int = signal.SIGTERM) -> int:
        process.send_signal(number)
        code = await anyio.to_thread.run_sync(process.wait, 30)
        if code > 0:
            print(self.log()[-6000:])  # shown when the test fails
        return code


@asynccontextmanager
async def opened_devnet(folder: Path) -> AsyncIterator[Devnet]:
    async with Devnet(folder, keys=folder / "keys") as opened:
        yield opened


@asynccontextmanager
async def opened_up(devnet: Devnet, root: Path) -> AsyncIterator[Up]:
    """A fresh state directory with keys of its own on a devnet; whatever was started is ended."""
    state = root / "state"
    (state / "devnet").mkdir(parents=True)
    (root / "personas").mkdir()
    (root / "config").mkdir()
    state.chmod(0o700)
    shutil.copy(devnet.profile, state / "devnet" / "devnet.toml")
    (state / "keys").mkdir(mode=0o700)
    async with Rpc(devnet.chain.url) as rpc:
        for name in ("identity", "sponsor"):
            path = state / "keys" / name
            path.write_text(os.urandom(32).hex())
            path.chmod(0o600)
            await fund(rpc, address_of(load_key(path)), 10**21)
    write_dial(state, Rung.EXERCISE, "a test", "test", SystemClock())
    made = Up(state, devnet)
    try:
        yield made
    finally:
        for process in made.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
async def devnet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Devnet]:
    async with opened_devnet(tmp_path_factory.mktemp("devnet")) as opened:
        yield opened


@pytest.fixture
async def up(devnet: Devnet, tmp_path: Path) -> AsyncIterator[Up]:
    async with opened_up(devnet, tmp_path) as made:
        yield made
