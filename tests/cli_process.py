"""`fleet …` as a process of its own, forked from one that has imported the whole fleet.

A start of Python and its imports is most of what a command of the tests would cost: up to two seconds of a
processor. The child is a real process with its own environment, folder, streams and status, and ends as an
interpreter does. With QA_REAL_START=1 (`make e2e`) each one is started from nothing.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fleet.files import ROOT


def run_fleet(
    *words: str, env: Mapping[str, str], timeout: float = 300, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` gives for `fleet WORDS` with captured text and no input; TimeoutExpired too."""
    command = [sys.executable, "-m", "fleet.cli", *words]
    copied = cwd is not None and (cwd / "fleet").is_dir()  # another program: Python imports from where it is
    if copied or os.environ.get("QA_REAL_START"):
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
        )
    life = json.dumps({"words": words, "env": dict(env), "cwd": str(cwd or Path.cwd())})
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _told(life.encode(), out.fileno(), err.fileno(), timeout, command)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(command, code, *texts)


def _told(life: bytes, out: int, err: int, timeout: float, command: list[str]) -> int:
    """Have it run; its exit status as subprocess gives it."""
    reader, writer = os.pipe()
    with _server().makefile("wb") as request, open(reader, "rb", buffering=0) as answer:
        socket.send_fds(_server(), [len(life).to_bytes(4)], [out, err, writer])
        request.write(life)
        request.flush()
        os.close(writer)
        pid = int(_line(answer.fileno(), 60))
        deadline = time.monotonic() + timeout
        try:
            return int(_line(answer.fileno(), deadline - time.monotonic()))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            _line(answer.fileno(), 60)
            raise subprocess.TimeoutExpired(command, timeout) from None


def _line(fd: int, seconds: float) -> bytes:
    found = b""
    end = time.monotonic() + seconds
    while not found.endswith(b"\n"):
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError
        piece = os.read(fd, 1)
        assert piece, "the process that forks has died"
        found += piece
    return found


@cache
def _server() -> socket.socket:
    """The process that forks, one for each process of the tests; it ends with this one."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cli_server", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"]},
        cwd=ROOT,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours
