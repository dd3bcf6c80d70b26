"""SIGTERM ends a command that waits, and it tidies up, however a shell has started it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

WAITING = """
import anyio
from fleet.cli.console import run

async def main():
    try:
        print("waits", flush=True)
        await anyio.sleep_forever()
    finally:
        print("tidy", flush=True)

run(main)
"""


def in_the_background() -> None:
    """As a shell without job control starts what ends with `&`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("prepare", [None, in_the_background])
def test_sigterm_ends_a_waiting_command_tidily(prepare: Callable[[], None] | None) -> None:
    words = [sys.executable, "-c", WAITING]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=prepare) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waits\n"
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=60)[0] == "tidy\n"
        finally:
            process.kill()
    assert process.returncode == 143
