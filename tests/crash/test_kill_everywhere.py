"""SIGKILL after every journal step of a run, then the next start: nothing is lost, nothing doubled.

On SQLite a run by hand and the next one, which recovers; on PostgreSQL a daemon whose trigger fires the same
tick at every start, and every fourth time a peer on another machine. `make crash` leaves no step out.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from fleet.devnet.stack import Devnet
from tests.crash.farm import Farm, Home, Zygotes
from tests.crash.promises import check, never_less, spent
from tests.crash.trials import Trial, in_recovery, one_after_another
from tests.store.cluster import Cluster, running

pytestmark = [
    pytest.mark.anyio, pytest.mark.crash, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(3600),
]  # fmt: skip

FULL = bool(os.environ.get("CRASH_FULL"))
LANES = 2
"""Trials at a time: a daemon that starts over waits most of the time, until the dead one is known as dead."""


@pytest.fixture(scope="module")
def zygotes() -> Iterator[Zygotes]:
    zygotes = Zygotes(LANES)
    yield zygotes
    zygotes.end()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture(scope="module")
async def devnet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Devnet]:
    folder = tmp_path_factory.mktemp("devnet")
    async with Devnet(folder, keys=folder / "keys") as devnet:
        yield devnet


@pytest.fixture(params=["sqlite", "postgres"])
def farm(request: pytest.FixtureRequest, tmp_path: Path, devnet: Devnet, zygotes: Zygotes) -> Farm:
    if request.param == "sqlite":
        return Farm(tmp_path, devnet, "hand", None, zygotes)
    return Farm(tmp_path, devnet, "daemon", request.getfixturevalue("cluster"), zygotes)


async def test_a_run_survives_sigkill_after_every_journal_step(farm: Farm) -> None:
    names = await unharmed(farm)
    stride = 3 if farm.cluster and not FULL else 1
    await tried(farm, one_after_another(names, stride, peers=farm.cluster is not None), f"stride {stride}")


async def test_a_recovery_survives_sigkill_after_every_journal_step(farm: Farm) -> None:
    names = await unharmed(farm)
    kills = in_recovery(names) if FULL else in_recovery(names, ["finding.set"])
    stride = 1 if FULL else 4
    for first in kills:
        home = await killed(farm, first)
        code, steps = await farm.live(home)
        assert code == 0, (first, home.log)
        trials = [
            Trial(first, str(at), bool(farm.cluster) and at % 4 == 1) for at in range(2, len(steps) + 1)
        ]
        await tried(farm, trials[stride // 2 :: stride], f"stride {stride}")


async def unharmed(farm: Farm) -> list[str]:
    """The journal steps of a run that nobody kills."""
    clean = await farm.home()
    code, names = await farm.live(clean)
    assert code == 0, clean.log
    assert len(names) >= 30
    await check(farm, [clean], "a clean run")
    return names


async def tried(farm: Farm, trials: list[Trial], how: str) -> None:
    """All of these, a few at a time."""
    started, kills = time.monotonic(), farm.kills
    broken: list[str] = []

    async def some(lane: int) -> None:
        for trial in trials[lane::LANES]:
            try:
                await die_and_recover(farm, trial)
            except AssertionError as error:
                broken.append(f"{trial}: {error}")

    async with anyio.create_task_group() as tasks:
        for lane in range(LANES):
            tasks.start_soon(partial(some, lane))
    seconds = time.monotonic() - started
    print(f"\n{farm.way}, {how}: {len(trials)} trials, {farm.kills - kills} kills, {seconds:.0f} s")
    assert not broken, f"{len(broken)} of {len(trials)}:\n" + "\n".join(broken)


async def die_and_recover(farm: Farm, trial: Trial) -> None:
    """One trial: the processes that are killed, one that is not, and every promise after it."""
    home = await farm.home()
    homes = [home, farm.peer(home)] if trial.peer else [home]
    code, steps = await farm.live(home, trial.first)
    where = f"{trial} ({steps[-1] if steps else 'nothing'})"
    assert code == -signal.SIGKILL, (where, home.log)
    before = await spent(home)
    if trial.second:
        code, _ = await farm.live(homes[-1], trial.second)
        assert code in (0, -signal.SIGKILL), (where, homes[-1].log)
    for next_one in reversed(homes):
        code, _ = await farm.live(next_one)
        assert code == 0, (where, next_one.log)
    await check(farm, homes, where)
    never_less(before, await spent(home), where)


async def killed(farm: Farm, first: str) -> Home:
    home = await farm.home()
    code, _ = await farm.live(home, first)
    assert code == -signal.SIGKILL, (first, home.log)
    return home
