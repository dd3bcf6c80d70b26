"""What the kernel says of a process by its descriptor."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from fleet.jail.process import exit_code


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -KILL $$", 128 + signal.SIGKILL)])
def test_a_reaped_process_says_how_it_ended(script: str, code: int) -> None:
    process = subprocess.Popen(["/bin/sh", "-c", f"read line; {script}"], stdin=subprocess.PIPE)
    pidfd = os.pidfd_open(process.pid)
    try:
        assert exit_code(pidfd) is None
        process.communicate(b"go\n")
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
        assert exit_code(pidfd) == (code if release >= (6, 15) else None)
    finally:
        os.close(pidfd)
