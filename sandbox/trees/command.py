"""One command of a work tree in its jail: argv in, how its process ended out. No shell reads it.

It works on a copy of the tree. The request line holds `argv`, `stdin` (base64), `environment`, `keep`,
`wall_s`, `cpu_s` and `memory` (bytes); the result line how it ended, its status and its output, bounded and
in base64. With `keep`, what it has changed follows (`changes.py`).
Exit 0 says that this line is ours; everything else says nothing of the command.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from typing import Any

from sandbox import strict_json
from sandbox.errors import Failure, JailBroken
from sandbox.places import BOX
from sandbox.programs import process
from sandbox.programs.process import Ending
from sandbox.text import clean
from sandbox.trees.changes import is_full, write_changes
from sandbox.trees.copy import TREE, take_copy, variables, words

EXIT_BAD_LINE = 3
EXIT_BROKEN = 4
NOT_STARTED = 127
MAX_LINE = 16 << 20
LOOK_S = 0.05
"""Seconds between two looks at the room on the disk."""
KEPT = 192 << 10
"""Bytes of each end of an output that are kept: what failed is said first or last."""


def main() -> int:
    """Serve standard input once; the status is the process's."""
    try:
        asked = read_request(MAX_LINE)
        with FullDisk(BOX) as disk:
            result = command(asked)
        sys.stdout.write(json.dumps({"v": 1, **result}) + "\n")
        sys.stdout.flush()
        if asked["keep"]:
            write_changes(BOX, TREE, sys.stdout.buffer, full=disk.seen)
    except (ValueError, KeyError, TypeError) as error:
        print(f"bad request line: {type(error).__name__}", file=sys.stderr)
        return EXIT_BAD_LINE
    except JailBroken as broken:
        print(f"broken: {clean(str(broken))}", file=sys.stderr)
        return EXIT_BROKEN
    return 0


class FullDisk:
    """Watches whether the disk of a folder becomes full; `seen` once it was."""

    def __init__(self, folder: str) -> None:
        self._folder, self._over = folder, threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self.seen = False

    def __enter__(self) -> FullDisk:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while not self.seen and not self._over.wait(LOOK_S):
            self.seen = is_full(self._folder)
        self.seen = self.seen or is_full(self._folder)


def read_request(most: int) -> dict[str, Any]:
    """The request line as an object; ValueError for anything else."""
    line = sys.stdin.buffer.readline(most)
    asked = strict_json.loads(line)
    if not line.endswith(b"\n") or not isinstance(asked, dict) or asked.get("v") != 1:
        raise ValueError("not a request of this version")
    return asked


def command(asked: dict[str, Any]) -> dict[str, Any]:
    """Run it to its end, judged by the process and not by what it printed."""
    take_copy()
    os.chdir(BOX)
    environment = variables(asked["environment"])
    began = time.monotonic()
    try:
        ended = process.run(
            words(asked["argv"], environment),
            base64.b64decode(asked["stdin"]),
            float(asked["wall_s"]),
            float(asked["cpu_s"]),
            environment=environment,
            folder=BOX,
            memory=int(asked["memory"]),
        )
    except Failure as failure:
        return _result("exited", NOT_STARTED, b"", str(failure).encode(), time.monotonic() - began)
    seconds = time.monotonic() - began
    if len(ended.stdout) >= process.STDOUT:
        how = "flood"
    elif ended.ending is Ending.HANG:
        how = "timeout"
    else:
        how = "signaled" if ended.code < 0 else "exited"
    return _result(how, abs(ended.code), ended.stdout, ended.stderr, seconds)


def _result(how: str, code: int, stdout: bytes, stderr: bytes, seconds: float) -> dict[str, Any]:
    return {
        "how": how,
        "code": code,
        "stdout": _bounded(stdout),
        "stderr": _bounded(stderr),
        "seconds": round(seconds, 3),
    }


def _bounded(output: bytes) -> str:
    if len(output) > 2 * KEPT:
        output = output[:KEPT] + b"\n[...]\n" + output[-KEPT:]
    return base64.b64encode(output).decode()
