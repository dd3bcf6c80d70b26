"""A daemon that stops, is taken for dead, and goes on, at points of a run's end: nothing is posted twice.

Here at every 1,200th point of both outboxes; `make race` tries a hundred, at every point, and in half of
them the peer that took over is stopped in its turn.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from fleet.devnet.devnet import Devnet
from fleet.errors import FleetError
from tests.crash import course
from tests.crash.farm import Farm, Zygotes
from tests.crash.pauses import Pause, points, take_over
from tests.store.cluster import Cluster

pytestmark = course.MARKS

FULL = int(os.environ.get("RACE_TRIALS", "0"))
ONLY = os.environ.get("RACE_AT", "")
"""A part of the names of points, to look at some of them: `RACE_AT=tx.send`."""
SEED = int(os.environ.get("RACE_SEED", "8"))
LANES = 5 if FULL else 1
"""Pairs of daemons at a time: they wait most of the time."""


@pytest.fixture(scope="module")
def zygotes() -> Iterator[Zygotes]:
    zygotes = Zygotes(2 * LANES)
    yield zygotes
    zygotes.end()


@pytest.fixture
def farm(tmp_path: Path, devnet: Devnet, zygotes: Zygotes, cluster: Cluster) -> Farm:
    return Farm(tmp_path, devnet, "daemon", cluster, zygotes)


async def test_a_daemon_that_was_taken_for_dead_posts_nothing_a_second_time(farm: Farm) -> None:
    names = await points(farm)
    posted = [at for at, name in enumerate(names) if name.startswith("after finding.set")]
    last = next(at for at, name in enumerate(names) if name.startswith("before finding.claim#2"))
    few = [*names[: posted[0] + 1 : 1_200], *names[last : posted[-1] + 1 : 1_200]]
    pauses = [one for one in _all(names) if ONLY in one.at] if FULL else [Pause(name) for name in few]
    started, broken = time.monotonic(), []

    async def some(lane: int) -> None:
        for pause in pauses[lane::LANES]:
            try:
                await take_over(farm, pause)
            except* (AssertionError, TimeoutError, FleetError) as errors:
                broken.append(f"{pause}: {errors.exceptions!r}")

    async with anyio.create_task_group() as tasks:
        for lane in range(LANES):
            tasks.start_soon(partial(some, lane))
    seconds = time.monotonic() - started
    print(
        f"\n{len(pauses)} trials at {len({one.at for one in pauses})} points of {len(names)}, {seconds:.0f} s"
    )
    assert not broken, f"{len(broken)} of {len(pauses)}:\n" + "\n".join(broken)


def _all(names: list[str]) -> list[Pause]:
    """Each point in turn until there are enough; from the second round on the peer is stopped as well."""
    chance = random.Random(SEED)
    return [
        Pause(names[n % len(names)], chance.choice(names) if n >= len(names) else "") for n in range(FULL)
    ]
