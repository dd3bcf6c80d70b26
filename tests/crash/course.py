"""SIGKILL after the journal steps of a run, then the next start: nothing is lost, nothing doubled.

`make test` takes the kinds of step beside effects, and some times; `make crash` leaves none out.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from functools import partial

import anyio
import pytest

from tests.crash.farm import Farm, Home
from tests.crash.promises import check, never_less, spent
from tests.crash.trials import BUSY_AT, RECORDS_WHAT_HAPPENED, Trial, in_recovery, one_after_another

MARKS = [
    pytest.mark.anyio,
    pytest.mark.crash,
    pytest.mark.devnet,
    pytest.mark.jail,
    pytest.mark.timeout(3600),
]

FULL = bool(os.environ.get("CRASH_FULL"))
LONG = pytest.mark.skipif(not FULL, reason="the long form: make crash")
LANES = 2
"""Trials at a time: a daemon that starts over waits most of the time, until the dead one is known as dead."""


async def a_run_survives(
    farm: Farm, short: int = 1_200, kinds: Sequence[str] = (*RECORDS_WHAT_HAPPENED, *BUSY_AT)
) -> None:
    """Killed at these kinds of its journal steps, which are beside an effect, and at every so many of all."""
    names = await unharmed(farm)
    stride, kinds = (1, ()) if FULL else (short, kinds)
    trials = one_after_another(names, stride, kinds, peers=farm.cluster is not None)
    await tried(farm, trials, f"stride {stride}")


async def a_recovery_survives(farm: Farm) -> None:
    """Killed after the steps of the recovery itself."""
    names = await unharmed(farm)
    for first in in_recovery(names):
        home = await killed(farm, first)
        code, steps = await farm.live(home)
        assert code == 0, (first, home.log)
        trials = [
            Trial(first, str(at), bool(farm.cluster) and at % 4 == 1) for at in range(2, len(steps) + 1)
        ]
        await tried(farm, trials, "a recovery")


async def unharmed(farm: Farm) -> list[str]:
    """The journal steps of a run that nobody kills."""
    clean = await farm.home()
    code, names = await farm.live(clean)
    assert code == 0, clean.log
    assert len(names) >= 30
    await check([clean], "a clean run")
    return names


async def tried(farm: Farm, trials: list[Trial], how: str) -> None:
    """All of these, a few at a time."""
    started, kills, spared = time.monotonic(), farm.kills, farm.spared
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
    assert farm.spared - spared <= 1 + len(trials) // 10


async def die_and_recover(farm: Farm, trial: Trial) -> None:
    """One trial: the processes that are killed, one that is not, and every promise after it.

    A life may take a step less than the one that was counted: then there is none to be killed at.
    """
    home = await farm.home()
    homes = [home, farm.peer(home)] if trial.peer else [home]
    code, steps = await farm.live(home, trial.first)
    where = f"{trial} ({steps[-1] if steps else 'nothing'})"
    spared = code == 0 and len(steps) < int(trial.first.removeprefix("b"))
    assert spared or code == -signal.SIGKILL, (where, home.log)
    farm.spared += spared
    before = await spent(home)
    if trial.second:
        code, _ = await farm.live(homes[-1], trial.second)
        assert code in (0, -signal.SIGKILL), (where, homes[-1].log)
    for next_one in reversed(homes):
        code, _ = await farm.live(next_one)
        assert code == 0, (where, next_one.log)
    await check(homes, where)
    never_less(before, await spent(home), where)


async def killed(farm: Farm, first: str) -> Home:
    home = await farm.home()
    code, _ = await farm.live(home, first)
    assert code == -signal.SIGKILL, (first, home.log)
    return home
