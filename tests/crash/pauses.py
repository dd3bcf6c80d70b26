"""A daemon that is stopped (SIGSTOP) until a peer has taken it for dead, and then goes on: one trial."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import kill
from pathlib import Path

import anyio
from anyio import to_thread

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform, parse
from fleet.jail.process import proc_stat
from fleet.store.journal import Journal
from tests.crash.farm import Farm, Home
from tests.crash.promises import check
from tests.feed import read_feed

FIRST, LAST = "before finding.claim#1", "after run.finish#1"
"""Between these a run posts while it goes on, asks what is left, posts the rest, settles, sweeps and ends."""
SEEN = ["no-page", "wrong-method"]
"""The probes of the farm's persona that find something: a low one, and a critical one."""
LATER_S = 3.0
"""Longer than a daemon may be silent: the peer that is stopped as well is taken for dead in its turn."""
WITHIN_S = 90


@dataclass(frozen=True, slots=True)
class Pause:
    """Where the first daemon is stopped; and where its peer is when the first one goes on, "" for its end."""

    at: str
    peer_at: str = ""

    def __str__(self) -> str:
        return f"stopped {self.at}" + (f", its peer {self.peer_at}" if self.peer_at else "")


@dataclass(slots=True)
class Life:
    """One process over a home, in a task."""

    home: Home
    code: int | None = None
    over: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, farm: Farm, at: str) -> None:
        self.code, _ = await farm.live(self.home, QA_STOP_AT=at)
        self.over.set()

    def kill(self) -> None:
        """What is still there after its trial would keep the zygote, and so the test, waiting."""
        with suppress(ProcessLookupError):
            if self.code is None and (pid := self.home.pid):
                kill(pid, signal.SIGKILL)

    async def stopped(self) -> bool:
        """Waits for the stop; False when it ends without one."""
        with anyio.fail_after(WITHIN_S):
            while self.code is None:
                if (stat := proc_stat(self.home.pid)) is not None and stat.state == "T":
                    return True
                await anyio.sleep(0.05)
        return False

    async def ended(self) -> None:
        with anyio.fail_after(WITHIN_S):
            await self.over.wait()

    def go_on(self) -> None:
        with suppress(ProcessLookupError):
            if pid := self.home.pid:
                kill(pid, signal.SIGCONT)


async def points(farm: Farm) -> list[str]:
    """The points that an unharmed run passes between FIRST and LAST."""
    home = await farm.home()
    trace = farm.root / "trace"
    code, _ = await farm.live(home, QA_STOP_TRACE=str(trace))
    assert code == 0, home.log
    await right(farm, [home], "a run that nobody stops")
    passed = await to_thread.run_sync(trace.read_text)
    names = passed.splitlines()
    return names[names.index(FIRST) : names.index(LAST) + 1]


async def take_over(farm: Farm, pause: Pause) -> None:
    """Stop the first daemon, let a peer take over, let the first go on; every promise holds after it."""
    home = await farm.home()
    first, second = Life(home), Life(farm.peer(home))
    where = str(pause)
    async with anyio.create_task_group() as tasks:
        try:
            tasks.start_soon(first.run, farm, pause.at)
            assert await first.stopped(), (where, "it passed without a stop", home.log)
            tasks.start_soon(second.run, farm, pause.peer_at)
            if await second.stopped():
                first.go_on()
                with anyio.move_on_after(LATER_S):
                    await first.ended()
                second.go_on()
            first.go_on()
            await second.ended()
            await first.ended()
        finally:
            for life in (first, second):
                life.kill()
    assert (first.code, second.code) == (0, 0), (where, home.log, second.home.log)
    await right(farm, [home, second.home], where)


async def right(farm: Farm, homes: Sequence[Home], where: str) -> None:
    """Posted once, and every record says what the chain says."""
    await check(homes, where)
    profile = parse(Platform, farm.devnet.profile.read_text(), file="devnet.toml")
    async with Rpc(profile.chain.rpc) as rpc, await Journal.open(homes[0].place) as journal:
        findings = await journal.findings()
        asked = sorted(one.probe for one in findings)
        assert asked == SEEN[-len(asked) :], (where, findings)  # a peer asks nothing anew
        for finding in findings:
            assert finding.state == "posted", (where, finding)
            (entry,) = await FeedbackLog(rpc, profile.chain.diamond, profile.gas).range(finding.index, 1)
            assert (entry.sender, entry.text) == (homes[0].identity, finding.envelope), (where, finding)
        mined = {}
        for effect in await journal.effects(None, ["tx"]):
            receipt = await rpc.call("eth_getTransactionReceipt", [effect.ref])
            seen = None if receipt is None else int(receipt["status"], 16)
            assert effect.data.get("status") == seen, (where, effect)
            assert effect.state == ("done" if seen == 1 else "failed"), (where, effect)
            mined[effect.ref] = effect.data["purpose"]
        assert {mined.get(one.tx) for one in findings} == {"post"}, (where, findings)
        for name in await journal.effects(None, ["name"]):
            left = int(await rpc.call("eth_getBalance", [name.data["owner"], "latest"]), 16)
            assert left < 21_000 * 10 * 10**9, (where, left)
    for home in homes:
        assert "Traceback" not in home.log, (where, home.log)
        assert faults(home.state) == [], where


def faults(state: Path) -> list[object]:
    return [event for event in read_feed(state / "events.jsonl") if event.type == "fault.met"]
