"""`fleet up` in a terminal: Ctrl-C reaches the process group of the terminal, and drains like SIGTERM."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.service.conftest import CREATE, FETCH, LONG, Up, persona, processes_of

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
CTRL_C = b"\x03"
SEVERAL = persona("qa-long", CREATE, *[FETCH] * 9, trigger='continuous = "1s"')
"""Mints a name, and looks at nine pages after it."""


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs  # `begin` gives the second one away
    os.close(ours)


def begin(up: Up, terminal: tuple[int, int], *words: str) -> subprocess.Popen[bytes]:
    """The daemon in the foreground of a terminal of its own; what it prints goes to `up.log`."""
    ours, theirs = terminal
    process = subprocess.Popen(
        [sys.executable, "-m", "fleet.cli", "up", "--personas", str(up.personas), *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=up.environment(TERM="dumb"),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    up.processes.append(process)

    def copy() -> None:
        with (up.state.parent / "up.log").open("ab", buffering=0) as log, suppress(OSError):
            while data := os.read(ours, 65_536):
                log.write(data)

    threading.Thread(target=copy, daemon=True).start()
    return process


def jails(parent: int) -> list[int]:
    """The process groups of the bubblewraps that this process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            state, ppid, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if (
                (entry / "cmdline").read_bytes().startswith(b"bwrap\0")
                and int(ppid) == parent
                and state != "Z"
            ):
                found.append(int(group))
    return found


async def test_ctrl_c_drains_and_the_run_in_flight_keeps_its_jails(up: Up, terminal: tuple[int, int]) -> None:
    up.drop("qa-long", SEVERAL)
    process = begin(up, terminal, "--grace", "60")
    run = await up.minted()
    groups = await up.until(lambda: jails(process.pid))
    assert process.pid not in groups  # what the terminal sends does not reach them
    os.write(terminal[0], CTRL_C)
    await up.until(lambda: up.told("daemon.draining"))
    assert up.told("daemon.draining")[0].reason == "SIGINT"
    assert await anyio.to_thread.run_sync(process.wait, 60) == 0
    assert [end["outcome"] for end in up.footers(run)] == ["done"]
    trajectory = (up.state / "runs" / run / "trajectory.jsonl").read_text()
    assert "jail" not in "".join(line for line in trajectory.splitlines() if '"is_error":true' in line)
    assert not any(await up.held(run))
    assert processes_of(up.state) == []


async def test_a_second_ctrl_c_ends_at_once_with_130(up: Up, terminal: tuple[int, int]) -> None:
    up.drop("qa-long", LONG)
    process = begin(up, terminal, "--grace", "60")
    await up.minted()
    os.write(terminal[0], CTRL_C)
    await up.until(lambda: up.told("daemon.draining"))
    await anyio.sleep(1.1)  # within a second it would be the echo of the first
    os.write(terminal[0], CTRL_C)
    assert await anyio.to_thread.run_sync(process.wait, 30) == 130
    await up.until(lambda: processes_of(up.state) == [])
