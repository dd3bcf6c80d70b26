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
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from fleet.files import ROOT


def run_fleet(
    *words: str, env: Mapping[str, str], timeout: float = 300, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` gives for `fleet WORDS` with captured text and no input; TimeoutExpired too."""
    copied = cwd is not None and (cwd / "fleet").is_dir()  # another program: Python imports from where it is
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start_fleet(*words, env=env, cwd=cwd, out=out.fileno(), err=err.fileno(), fork=not copied)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(process.args, code, *texts)


class Forked:
    """A forked `fleet WORDS` with the part of `subprocess.Popen` that tests use."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], cwd: Path, out: int, err: int) -> None:
        self.args = [sys.executable, "-m", "fleet.cli", *words]
        self.returncode: int | None = None
        life = json.dumps({"words": words, "env": dict(env), "cwd": str(cwd)}).encode()
        reader, writer = os.pipe()
        self._status = open(reader, "rb", buffering=0)  # noqa: SIM115 -- closed when it has said how it ended
        with _server().makefile("wb") as request:
            socket.send_fds(_server(), [len(life).to_bytes(4)], [out, err, writer])
            request.write(life)
        os.close(writer)
        self.pid = int(self._line(60) or 0)

    def poll(self) -> int | None:
        if self.returncode is None and (line := self._line(0)) is not None:
            self.returncode = int(line)
            self._status.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and self._line_waits(timeout):
            self.poll()
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _line_waits(self, seconds: float | None) -> bool:
        return bool(select.select([self._status], [], [], seconds)[0])

    def _line(self, seconds: float) -> bytes | None:
        """The next number it says: its pid, then how it ended. Each is written whole."""
        if not self._line_waits(seconds):
            return None
        line = self._status.readline()
        assert line.endswith(b"\n"), "the process that forks has died"
        return line


Process = subprocess.Popen[bytes] | Forked


def start_fleet(
    *words: str, env: Mapping[str, str], out: int, err: int, cwd: Path | None = None, fork: bool = True
) -> Process:
    """`fleet WORDS` in the background, without input; its streams go to these descriptors."""
    if fork and not os.environ.get("QA_REAL_START"):
        return Forked(words, env, cwd or Path.cwd(), out, err)
    command = [sys.executable, "-m", "fleet.cli", *words]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(env), cwd=cwd)


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
