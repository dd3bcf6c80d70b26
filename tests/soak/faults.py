"""The faults of a soak: each begins, holds for a while, and stops; what is left is for the daemon to mend."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio

from fleet.clock import SystemClock
from fleet.devnet.deploy import DEPLOYER
from fleet.devnet.devnet import INITIAL_WEI
from fleet.devnet.node import fund, invoke
from fleet.gate.model import Rung
from fleet.gate.stop import resume, stop
from tests.soak.cast import drop, text_of
from tests.soak.line import MODES
from tests.soak.stand import Stand

STEPS_S = (3600, -3600, 86_400, -600, 30, -30)
TOLD_S = 60.0
QUIET_S = 3.0
"""What was judged before dial or STOP turned is signed and journalled by then."""


async def hold(stand: Stand) -> None:
    await anyio.sleep(stand.chance.uniform(stand.hold_s / 3, stand.hold_s))


async def spoilt(stand: Stand, mode: str) -> None:
    stand.line.mode = mode
    await hold(stand)
    stand.line.mode = "clear"
    await stand.line.drop()


async def refused(stand: Stand) -> None:
    await stand.line.cut()
    await hold(stand)
    await stand.line.mend()


async def reorg(stand: Stand) -> None:
    await stand.rpc.call("anvil_reorg", [stand.chance.randint(1, 2), []])


async def cleared(stand: Stand) -> None:
    await invoke(stand.rpc, DEPLOYER, stand.platform.chain.diamond, "clearFeedback")


async def broke(stand: Stand) -> None:
    sponsor = stand.address("sponsor")
    await fund(stand.rpc, sponsor, 0)
    await hold(stand)
    await fund(stand.rpc, sponsor, INITIAL_WEI)


async def disk_full(stand: Stand) -> None:
    """Every byte of the small disk taken, and at times what is freed then too.

    Without such a disk no file of the daemon may grow.
    """
    if not stand.small_disk:
        before = resource.prlimit(stand.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(stand.pid, resource.RLIMIT_FSIZE, (1, before[1]))
        await hold(stand)
        resource.prlimit(stand.pid, resource.RLIMIT_FSIZE, before)
        return
    path = stand.state / "somebody-elses-file"
    try:
        greedy = stand.chance.random() < 0.5
        fill(path)
        with anyio.move_on_after(stand.chance.uniform(stand.hold_s / 2, stand.hold_s)):
            while True:
                await anyio.sleep(0.2)
                if greedy:
                    fill(path)
    finally:
        path.unlink(missing_ok=True)


def fill(path: Path) -> None:
    with path.open("ab", buffering=0) as handle, suppress(OSError):
        while handle.write(bytes(1 << 16)):
            pass


async def clock_set(stand: Stand) -> None:
    stand.step(stand.chance.choice(STEPS_S))
    await hold(stand)
    stand.step(0)


async def node_stopped(stand: Stand) -> None:
    os.kill(stand.devnet.chain.pid, signal.SIGSTOP)
    try:
        await hold(stand)
    finally:
        os.kill(stand.devnet.chain.pid, signal.SIGCONT)


async def jail_killed(stand: Stand) -> None:
    """Whichever jails there are, at work or waiting."""
    for _ in range(4):
        for path in (stand.state / "jails").glob("*.jail"):
            with suppress(OSError, ValueError):
                record = json.loads(path.read_text())
                if record["owner"] == stand.pid:
                    os.kill(record["pid"], signal.SIGKILL)
        await anyio.sleep(stand.chance.uniform(0.3, 1.5))


async def daemon_killed(stand: Stand) -> None:
    await stand.kill()
    stand.start()


async def daemon_killed_twice(stand: Stand) -> None:
    """The second time while it recovers from the first."""
    await daemon_killed(stand)
    await anyio.sleep(stand.chance.uniform(0.5, 4))
    await daemon_killed(stand)


async def listening(stand: Stand) -> None:
    """Waits, as a service manager does, until a daemon that was started just now can be told something."""
    await stand.until(stand.ready, TOLD_S, "a daemon that listens")


async def told(stand: Stand, kind: str, before: int) -> None:
    """Waits until the feed has more events of this kind than before."""

    async def more() -> bool:
        return count(stand, kind) > before

    await stand.until(more, TOLD_S, kind)


def count(stand: Stand, kind: str) -> int:
    return sum(event.type == kind for event in stand.events())


async def bad_config(stand: Stand) -> None:
    await listening(stand)
    good = stand.config.read_text()
    refusals, reloads = count(stand, "config.refused"), count(stand, "config.reloaded")
    stand.config.write_text("concurrency = many\n")
    os.kill(stand.pid, signal.SIGHUP)
    await told(stand, "config.refused", refusals)
    stand.config.write_text(good)
    os.kill(stand.pid, signal.SIGHUP)
    await told(stand, "config.reloaded", reloads)


async def stopped(stand: Stand) -> None:
    stop(stand.state, "soak", "the soak", SystemClock())
    async with stand.window("stop", QUIET_S):
        await hold(stand)
    resume(stand.state)


async def observe(stand: Stand) -> None:
    stand.turn(Rung.OBSERVE)
    async with stand.window("observe", QUIET_S):
        await hold(stand)
    stand.turn(Rung.EXERCISE)


async def persona_churn(stand: Stand) -> None:
    """Spoilt, gone, back. A daemon that starts finds the folder as it is, and tells no change."""
    await listening(stand)
    name = stand.chance.choice(["qa-smoke", "qa-security", "qa-fuzz", "qa-ux"])
    good = text_of(name)
    path = stand.personas / f"{name}.md"
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        (
            "persona.refused",
            lambda: drop(stand.personas, name, good.replace("+++\n", "+++\nbudget = [\n", 1)),
        ),
        ("persona.removed", path.unlink),
        ("persona.added", lambda: drop(stand.personas, name, good)),
    )
    for kind, act in steps:
        before = count(stand, kind)
        act()
        await told(stand, kind, before)


Fault = Callable[[Stand], Awaitable[None]]
FAULTS: dict[str, Fault] = {
    **{f"node-{mode}": partial(spoilt, mode=mode) for mode in MODES if mode != "clear"},
    "node-refused": refused,
    "node-stopped": node_stopped,
    "reorg": reorg,
    "log-cleared": cleared,
    "sponsor-empty": broke,
    "disk-full": disk_full,
    "clock-set": clock_set,
    "jail-killed": jail_killed,
    "daemon-killed": daemon_killed,
    "daemon-killed-twice": daemon_killed_twice,
    "bad-config": bad_config,
    "stop": stopped,
    "observe": observe,
    "persona-churn": persona_churn,
}
FIRST = (
    "daemon-killed",
    "disk-full",
    "reorg",
    "log-cleared",
    "clock-set",
    "node-wrong-chain",
    "node-busy",
    "node-refused",
    "node-slow",
)
"""What the short form begins with; then everything, by chance."""
DEADLY = frozenset({"daemon-killed", "daemon-killed-twice"})
"""Only in the first third: a process must live long enough for its memory to be judged."""
