"""A command that outlives whoever started it ends when its work ends, whatever its starter does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fleet.files import ROOT

WORK = """
import os, sys
from fleet.cli.detach import outlive
outlive()
line = sys.stdin.readline()
os.close(0)
print(f"heard {line!r}", flush=True)
sys.exit(7)
"""


def start() -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", WORK]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)


@pytest.mark.timeout(60)
def test_it_ends_with_its_work_while_stdin_stays_open_and_silent() -> None:
    with start() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.read() == b"heard 'go\\n'\n"
        assert process.wait(50) == 7
        process.stdin.close()


@pytest.mark.timeout(60)
def test_what_is_said_before_stdin_ends_is_passed_on() -> None:
    with start() as process:
        assert (
            process.communicate(b"x" * 200_000 + b"\n", timeout=50)[0]
            == b"heard " + repr("x" * 200_000 + "\n").encode() + b"\n"
        )
        assert process.returncode == 7
    with start() as process:
        assert process.communicate(timeout=50)[0] == b"heard ''\n"
