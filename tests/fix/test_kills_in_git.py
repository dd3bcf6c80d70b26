"""SIGKILL while git pushes: the remote's own hook holds the push where the test wants it.

A remote on this machine loses the push with the process. A server goes on without its client: what was pushed
arrives before the next start has looked, after its own push, or in the middle of it.
`make test` has the last of these.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from tests.crash.farm import Zygotes
from tests.fix.git_http import serve_git
from tests.fix.killing import KillTrial

pytestmark = [pytest.mark.anyio, pytest.mark.crash, pytest.mark.timeout(300)]
full = pytest.mark.skipif(not os.environ.get("CRASH_FULL"), reason="the long form: make crash")
NEVER = "999999"
"""A step that no process reaches: the test kills it."""
HOOK = """#!/bin/sh
n=1; until mkdir {folder}/push$n 2>/dev/null; do n=$((n+1)); done
until [ -e {folder}/go$n ] || [ -e {folder}/go ]; do sleep 0.05; done
"""


@pytest.fixture(scope="module")
def zygotes() -> Iterator[Zygotes]:
    zygotes = Zygotes(1, "tests.fix.kill_zygote")
    yield zygotes
    zygotes.end()


@pytest.fixture
def trial(tmp_path: Path, zygotes: Zygotes) -> KillTrial:
    made = KillTrial(tmp_path / "t", zygotes)
    hooks = made.remote.bare / "hooks"
    hooks.mkdir()
    (hooks / "pre-receive").write_text(HOOK.format(folder=made.folder))
    (hooks / "pre-receive").chmod(0o755)
    return made


async def pushing(trial: KillTrial, number: int = 1) -> None:
    """Until this push has reached the remote and is held there."""
    with anyio.fail_after(60):
        for _ in range(6000):
            if (trial.folder / f"push{number}").exists():
                return
            await anyio.sleep(0.01)


@asynccontextmanager
async def killed(trial: KillTrial) -> AsyncIterator[None]:
    """After a proposer was killed in its push."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(trial.live, crash_at=NEVER))
        await pushing(trial)
        os.kill(int((trial.folder / "one" / "pid").read_text()), signal.SIGKILL)
    yield


@full
async def test_a_push_that_is_killed_is_made_again(trial: KillTrial) -> None:
    async with killed(trial):
        (trial.folder / "go2").touch()
        await trial.live()
    await trial.check("the remote lost the first push")
    assert not (trial.folder / "go1").exists()


async def before(trial: KillTrial) -> None:
    """It arrives before the next start."""
    release(trial)
    await arrived(trial)
    await trial.live()


async def after(trial: KillTrial) -> None:
    """It arrives when the next proposal is open."""
    (trial.folder / "go2").touch()
    await trial.live()
    release(trial)


async def meanwhile(trial: KillTrial) -> None:
    """It arrives while the next push is under way."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trial.live)
        await pushing(trial, 2)
        release(trial, 1)
        await arrived(trial)
        release(trial)


def release(trial: KillTrial, number: int = 0) -> None:
    (trial.folder / f"go{number or ''}").touch()


async def arrived(trial: KillTrial) -> None:
    with anyio.fail_after(60):
        for _ in range(6000):
            if await to_thread.run_sync(trial.remote.head, "qa-fleet/*"):
                return
            await anyio.sleep(0.01)


@pytest.mark.parametrize(
    "arrives",
    [pytest.param(before, marks=full), pytest.param(after, marks=full), meanwhile],
    ids=["before", "after", "meanwhile"],
)
async def test_a_push_that_a_server_ends_without_its_client(
    trial: KillTrial, arrives: Callable[[KillTrial], Awaitable[None]]
) -> None:
    with serve_git(trial.folder) as served:
        trial.url = f"{served.url}/remote.git"
        async with killed(trial):
            await arrives(trial)
    await trial.check(f"the first push arrives {arrives.__name__}")
