"""SIGKILL at the steps of a proposal, then the next start: one branch, one request, one record, no remains.

Steps are writes of the journal, git commands and posts. `make test` takes some, `make crash` one after
and one before every step, kills of the recovery, GitHub's stand-in, a peer that settles, and processes that
are stopped longer than their lease.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import pytest

from tests.crash.farm import Zygotes
from tests.fix.github_server import GitHubServer, served
from tests.fix.killing import KillTrial
from tests.store.cluster import Cluster, running

pytestmark = [pytest.mark.anyio, pytest.mark.crash, pytest.mark.timeout(3600)]
FULL = bool(os.environ.get("CRASH_FULL"))
full = pytest.mark.skipif(not FULL, reason="the long form: make crash")
LANES = 2
PEERS = ("one", "peer")
KINDS = (
    *("git.checkout-index", "proposal.pushing", "git.push", "b:proposal.open", "proposal.open", "log.post"),
)
"""The first step of each of these names; `b:` is right before it."""
PAUSES = (
    *("push.begun#1", "before git.push#1", "after git.push#1", "open.begun#1", "before git.request-pull#1"),
    *("after git.checkout-index#2", "before proposal.checked#1", "before proposal.open#1"),
)
"""Where a process is stopped until a peer has settled, or made, the proposal."""


class MakeTrial(Protocol):
    def __call__(self, *, place: str = "", server: GitHubServer | None = None) -> KillTrial: ...


@pytest.fixture(scope="module")
def zygotes() -> Iterator[Zygotes]:
    zygotes = Zygotes(LANES, "tests.fix.kill_zygote")
    yield zygotes
    zygotes.end()


@pytest.fixture
def make(tmp_path: Path, zygotes: Zygotes) -> MakeTrial:
    numbers = itertools.count(1)

    def made(*, place: str = "", server: GitHubServer | None = None) -> KillTrial:
        return KillTrial(tmp_path / f"t{next(numbers)}", zygotes, place, server)

    return made


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


async def test_a_proposal_survives_sigkill(make: MakeTrial) -> None:
    steps = await unharmed(make())
    points = every(steps) if FULL else [place(steps, kind) for kind in KINDS]
    await tried([(point,) for point in points], make)


@full
async def test_a_recovery_survives_sigkill(make: MakeTrial) -> None:
    """Killed first where a recovery has most to do, then at each step of the next process."""
    steps = await unharmed(make())
    for kind in ("proposal.checked", "git.push", "proposal.opening", "b:proposal.open", "proposal.open"):
        first, clean = place(steps, kind), make()
        await clean.live(crash_at=first)
        await tried([(first, second) for second in every(await clean.live())], make)


@full
async def test_a_proposal_on_github_survives_sigkill(make: MakeTrial) -> None:
    """One after another: the server has one repository."""
    async with served(GitHubServer()) as server:
        steps = await unharmed(make(server=server))
        for point in every(steps):
            await tried([(point,)], partial(make, server=server))


@full
async def test_a_peer_settles_what_a_killed_process_left(make: MakeTrial, cluster: Cluster) -> None:
    steps = await unharmed(make(place=cluster.place()))
    await tried([(point,) for point in every(steps)], lambda: make(place=cluster.place()), PEERS)


@full
async def test_a_recoverer_that_was_killed_holds_its_turn_no_longer_than_its_lease(
    make: MakeTrial, cluster: Cluster
) -> None:
    """It dies at its first look at the remote; the peer starts again and again, as a daemon looks."""
    steps = await unharmed(make(place=cluster.place()))
    clean, trial = make(place=cluster.place()), make(place=cluster.place())
    for one in (clean, trial):
        await one.live("one", place(steps, "git.push"))
    await trial.live("one", place(await clean.live("one", way="settle"), "git.ls-remote"), way="settle")
    assert await trial.states() == ["pushing"]
    for _ in range(120):
        await trial.live("peer", way="settle")
        if await trial.states() == ["open"]:
            break
        await anyio.sleep(0.25)
    assert await trial.states() == ["open"], trial.log("peer")
    await trial.live("one", way="settle")
    await trial.check("a recoverer was killed in its turn", PEERS)


@full
async def test_a_process_that_was_taken_for_dead_acts_no_more(make: MakeTrial, cluster: Cluster) -> None:
    """The peer settles its proposal, or makes one of its own, and then it goes on."""
    for at, way in itertools.product(PAUSES, ("propose", "settle")):
        await goes_on(make(place=cluster.place()), at, way)


async def goes_on(trial: KillTrial, at: str, way: str) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(trial.live, "one", QA_STOP_AT=at))
        pid = await trial.stopped("one")
        await trial.live("peer", way=way)
        os.kill(pid, signal.SIGCONT)
    for me in PEERS:
        await trial.live(me)
    await trial.check(f"stopped {at}, {way}", PEERS)


async def unharmed(trial: KillTrial) -> list[str]:
    """The steps of a proposal that is not killed."""
    steps = await trial.live()
    await trial.check("a clean run")
    return steps


async def tried(
    deaths: Sequence[tuple[str, ...]], make: Callable[[], KillTrial], machines: Sequence[str] = ("one",)
) -> None:
    """All of these, a few at a time: each the kills of one trial, one process after another."""
    started, kills, broken = time.monotonic(), 0, []

    async def some(lane: int) -> None:
        nonlocal kills
        for death in deaths[lane::LANES]:
            trial = make()
            try:
                await die_and_recover(trial, death, machines)
            except AssertionError as error:
                broken.append(f"{death}: {error}")
            kills += trial.kills

    async with anyio.create_task_group() as tasks:
        for lane in range(LANES):
            tasks.start_soon(some, lane)
    print(f"\n{len(deaths)} trials, {kills} kills, {time.monotonic() - started:.0f} s")
    assert not broken, f"{len(broken)} of {len(deaths)}:\n" + "\n".join(broken)
    assert kills >= len(deaths)


async def die_and_recover(trial: KillTrial, death: tuple[str, ...], machines: Sequence[str]) -> None:
    for point in death:
        await trial.live("one", point)
    before = await trial.spent()
    for me in reversed(machines):
        await trial.live(me)
    after = await trial.spent()
    assert all(after[run] >= calls for run, calls in before.items()), (death, before, after)
    await trial.check(f"killed at {death}", machines)


def place(steps: Sequence[str], kind: str) -> str:
    """Where to die: after the first step of a name, or before it."""
    before, _, name = kind.rpartition(":")
    return f"{before}{steps.index(name) + 1}"


def every(steps: Sequence[str]) -> list[str]:
    """Before and after each."""
    return [f"{before}{number}" for number in range(1, len(steps) + 1) for before in ("b", "")]
