"""State directories by the dozen over one devnet, and processes in them that are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from fleet.app.lock import holder
from fleet.chain.keys import address_of, load_key
from fleet.chain.node.rpc import Rpc
from fleet.clock import SystemClock
from fleet.devnet.deploy import Registries
from fleet.devnet.devnet import Devnet
from fleet.devnet.node import fund
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from tests.registry import log_to
from tests.store.cluster import Cluster

CALLS = 20
WRITES = 4
PROBES = 3
"""Each is one turn."""
PERSONA = f"""+++
name = "qa-crash"
surface = "ux"
tools = ["qa_create", "qa_fetch"]
budget = {{ calls = {CALLS}, writes = {WRITES}, wall = "2m" }}

[[probe]]
id = "wrong-method"
severity = "critical"
steps = [{{ tool = "qa_fetch", args = {{ url = "{{site}}/v1beta/models/x:generateContent" }} }}]
expect = "result.status != 405"
finding = "always seen, and posted while the run goes on: this address wants another method"

[[probe]]
id = "mint"
severity = "low"
steps = [{{ tool = "qa_create", args = {{ name = "{{name}}" }} }}]
expect = "result.ok"
finding = "never seen: a name cannot be minted"

[[probe]]
id = "no-page"
severity = "low"
steps = [{{ tool = "qa_fetch", args = {{ url = "{{site}}/absent" }} }}]
expect = "result.status != 404"
finding = "always seen, and posted at the end of the run: this page is missing"
+++
You die often.
"""
ZYGOTE = "tests.crash.zygote"
STALLED_S = 2
"""How soon a daemon is taken for dead: the least that can be configured."""


def post_to_a_registry(state: Path, at: Registries) -> None:
    """Change the profile of a state directory to one whose log is a Reputation registry."""
    log_to(state / "devnet" / "devnet.toml", at, address_of(load_key(state / "keys" / "identity")))


@dataclass(slots=True)
class Home:
    """One state directory, and where its journal is."""

    state: Path
    place: Path | str

    @property
    def log(self) -> str:
        return (self.state / "child.log").read_text()

    @property
    def pid(self) -> int:
        """Of the process that is at work here; 0 when there is none."""
        return holder(self.state)

    @property
    def identity(self) -> str:
        return address_of(load_key(self.state / "keys" / "identity"))


class Zygote:
    """A process that has imported everything, and forks."""

    def __init__(self, module: str = ZYGOTE) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def live(self, life: dict[str, str]) -> tuple[int, list[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(life), file=self._process.stdin, flush=True)
        code, steps = json.loads(self._process.stdout.readline())
        return code, steps

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0
        self._process.stdout.close()


class Zygotes:
    """A few of them, for as many trials at a time."""

    def __init__(self, count: int, module: str = ZYGOTE) -> None:
        self._all = [Zygote(module) for _ in range(count)]
        self._idle = list(self._all)
        self._places = anyio.Semaphore(count)

    @asynccontextmanager
    async def idle(self) -> AsyncIterator[Zygote]:
        async with self._places:
            zygote = self._idle.pop()
            yield zygote
            self._idle.append(zygote)

    def end(self) -> None:
        for zygote in self._all:
            zygote.end()


@dataclass(slots=True)
class Farm:
    """One devnet for many homes, each with keys of its own. `way` is how a process is at work there."""

    root: Path
    devnet: Devnet
    way: str
    cluster: Cluster | None
    zygotes: Zygotes
    count: int = 0
    kills: int = 0
    spared: int = 0
    registry: Registries | None = None
    """The log of its homes, where it is not the diamond's."""
    sponsored: bool = False
    """Whether its keys never hold anything (EIP-7702, or Tempo's payer of fees)."""
    fund: Callable[[Rpc, str, int], Awaitable[None]] = fund
    """Gives a standing key what it pays with on this chain."""

    async def home(self) -> Home:
        """A fresh state directory whose profile points at the shared devnet."""
        self.count += 1
        state = self.root / f"s{self.count}"
        for folder in ("personas", "devnet", "config"):
            (state / folder).mkdir(parents=True)
        state.chmod(0o700)
        (state / "personas" / "qa-crash.md").write_text(PERSONA)
        shutil.copy(self.devnet.profile, state / "devnet" / "devnet.toml")
        (state / "keys").mkdir(mode=0o700)
        async with Rpc(self.devnet.chain.url) as rpc:
            for name in ("identity", "sponsor"):
                path = state / "keys" / name
                path.write_text(os.urandom(32).hex())
                path.chmod(0o600)
                await self.fund(rpc, address_of(load_key(path)), 10**21)
        if at := self.registry:
            post_to_a_registry(state, at)
        if self.sponsored:
            profile = state / "devnet" / "devnet.toml"
            profile.write_text(f'{profile.read_text()}\n[sponsor]\nmode = "sponsored"\n')
        write_dial(state, Rung.EXERCISE, "a test", "test", SystemClock())
        if self.cluster is None:
            return Home(state, state / "fleet.db")
        url = await anyio.to_thread.run_sync(self.cluster.place)
        store = f'[store]\nurl = "{url}"\nstalled_s = {STALLED_S}\n'
        (state / "config" / "fleet.toml").write_text(store)
        return Home(state, url)

    def peer(self, home: Home) -> Home:
        """Another machine of the same fleet, before anything happened: same keys, same journal."""
        state = home.state.with_name(f"{home.state.name}-peer")
        shutil.copytree(home.state, state)
        return Home(state, home.place)

    async def live(self, home: Home, crash_at: str = "", **stop: str) -> tuple[int, list[str]]:
        """One process over this home: exit code (negative: the signal), and the journal steps it took."""
        async with self.zygotes.idle() as zygote:
            life = {"state": str(home.state), "way": self.way, "crash_at": crash_at} | stop
            code, steps = await anyio.to_thread.run_sync(zygote.live, life)
        self.kills += code == -signal.SIGKILL
        return code, steps
