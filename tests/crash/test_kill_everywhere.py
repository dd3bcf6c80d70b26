"""SIGKILL after every journal step of a run, then the next start: nothing is lost, nothing doubled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from fleet.chain.feedback import FeedbackLog
from fleet.chain.keys import address_of, load_key
from fleet.chain.names import Names
from fleet.chain.rpc import Rpc
from fleet.clock import SystemClock
from fleet.config import Platform, parse
from fleet.devnet.node import fund
from fleet.devnet.stack import Devnet
from fleet.events.model import Footer, Header
from fleet.events.trajectory import read
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.store.journal import Journal

pytestmark = [pytest.mark.crash, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(900)]

PERSONA = """+++
name = "qa-crash"
surface = "ux"
tools = ["qa_create", "qa_fetch"]
budget = { calls = 12, writes = 4, wall = "2m" }

[[probe]]
id = "wrong-method"
severity = "low"
steps = [{ tool = "qa_fetch", args = { url = "{site}/v1beta/models/x:generateContent" } }]
expect = "result.status != 405"
finding = "always seen: this address wants another method"

[[probe]]
id = "mint"
severity = "low"
steps = [{ tool = "qa_create", args = { name = "{name}" } }]
expect = "result.ok"
finding = "never seen: a name cannot be minted"
+++
You die often.
"""


RECORDS_WHAT_HAPPENED = ("effect.resolve", "finding.set", "run.finish")
"""Steps that follow an effect outside: before them, it has happened and nobody has written it down."""


@dataclass
class Farm:
    """One devnet for many state directories, each with keys of its own."""

    root: Path
    devnet: Devnet
    zygote: subprocess.Popen[str]
    count: int = 0

    async def state(self) -> Path:
        """A fresh state directory whose profile points at the shared devnet."""
        self.count += 1
        state = self.root / f"s{self.count}"
        (state / "personas").mkdir(parents=True)
        state.chmod(0o700)
        (state / "personas" / "qa-crash.md").write_text(PERSONA)
        (state / "devnet").mkdir()
        shutil.copy(self.devnet.profile, state / "devnet" / "devnet.toml")
        (state / "keys").mkdir(mode=0o700)
        async with Rpc(self.devnet.chain.url) as rpc:
            for name in ("identity", "sponsor"):
                path = state / "keys" / name
                path.write_text(os.urandom(32).hex())
                path.chmod(0o600)
                await fund(rpc, address_of(load_key(path)), 10**21)
        write_dial(state, Rung.EXERCISE, "a test", "test", SystemClock())
        return state

    def live(self, state: Path, crash_at: str = "0") -> tuple[int, int, str]:
        """One process over this state: exit code (negative: the signal), steps taken, the last one's name."""
        assert self.zygote.stdin is not None
        assert self.zygote.stdout is not None
        (state / "steps").unlink(missing_ok=True)
        print(state, crash_at, file=self.zygote.stdin, flush=True)
        code, steps, *name = self.zygote.stdout.readline().split()
        return int(code), int(steps), " ".join(name)


@pytest.fixture(scope="module")
def zygote() -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).with_name("zygote.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


@pytest.fixture
async def farm(tmp_path: Path, zygote: subprocess.Popen[str]) -> AsyncIterator[Farm]:
    async with Devnet(tmp_path / "devnet", keys=tmp_path / "devnet" / "keys") as devnet:
        yield Farm(tmp_path, devnet, zygote)


async def check(farm: Farm, state: Path, where: str) -> None:
    """Every promise that a killed run makes."""
    profile = parse(Platform, farm.devnet.profile.read_text(), file="devnet.toml")
    identity = address_of(load_key(state / "keys" / "identity"))
    async with Rpc(profile.chain.rpc) as rpc, await Journal.open(state / "fleet.db") as journal:
        runs = await journal.runs()
        assert [row.state for row in runs] == ["ended"] * len(runs), where
        assert await journal.effects(None, states=["open"]) == [], where
        for effect in await journal.effects(None, kinds=["name"]):
            assert await Names(rpc, profile.chain.diamond).owner_of_name(effect.ref) == "", where
        log = FeedbackLog(rpc, profile.chain.diamond, profile.gas)
        mine = [entry for entry in await log.range(0, 10_000) if entry.sender == identity]
        findings = await journal.findings()
        assert [row.state for row in findings if row.state not in ("posted", "repeated")] == [], where
        assert len(mine) == len({row.fingerprint for row in findings}), (where, mine)
        for row in runs:
            assert not (state / "runs" / row.run_id / "keys").exists(), where
            spent = await journal.spent(row.run_id)
            assert spent.get("calls", 0) <= 12, where
            assert spent.get("writes", 0) <= 4, where
            events = list(read(state / "runs" / row.run_id / "trajectory.jsonl"))
            if row.outcome != "cancelled":
                assert isinstance(events[0], Header), where
                assert isinstance(events[-1], Footer), where
                assert sum(isinstance(event, Footer) for event in events) == 1, where
    assert list((state / "jails").glob("*.jail")) == [], where


@pytest.mark.anyio
async def test_a_run_survives_sigkill_after_every_journal_step(farm: Farm) -> None:
    clean = await farm.state()
    code, steps, _ = await anyio.to_thread.run_sync(farm.live, clean)
    assert code == 0, (clean / "child.log").read_text()
    assert steps >= 30
    await check(farm, clean, "a clean run")
    for at in range(1, steps + 1):
        name = await die_and_recover(farm, str(at), again=at % 3 == 0)
        if name in RECORDS_WHAT_HAPPENED:
            await die_and_recover(farm, f"b{at}", again=False)


async def die_and_recover(farm: Farm, at: str, *, again: bool) -> str:
    """One trial; with `again` the recovery is killed too. The name of the last step before the end."""
    state = await farm.state()
    code, _, name = await anyio.to_thread.run_sync(farm.live, state, at)
    assert code == -signal.SIGKILL, (at, (state / "child.log").read_text())
    before = await spent(state)
    if again:
        code, *_ = await anyio.to_thread.run_sync(farm.live, state, "2")
        assert code in (0, -signal.SIGKILL), (at, (state / "child.log").read_text())
    code, *_ = await anyio.to_thread.run_sync(farm.live, state)
    assert code == 0, (at, (state / "child.log").read_text())
    await check(farm, state, f"killed at {at} ({name})")
    after = await spent(state)
    for run, units in before.items():
        assert all(after[run].get(unit, 0) >= amount for unit, amount in units.items()), at
    return name


async def spent(state: Path) -> dict[str, dict[str, int]]:
    async with await Journal.open(state / "fleet.db") as journal:
        return {row.run_id: await journal.spent(row.run_id) for row in await journal.runs()}
