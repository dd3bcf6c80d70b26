"""Forks one process per line of input, a JSON object of a `Life`, from one that has imported everything.

Each child is a real process with real signals, without a second of imports per trial, and leaves by
`_exit`. Answers each line with the child's wait status and the names of the steps it took.
"""

from __future__ import annotations

import gc
import json
import os
import select
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import anyio

Ways = Mapping[str, Callable[[Path], Awaitable[None]]]
"""What a process may do in a state directory, by name."""


def child(ways: Ways, life: dict[str, str], steps: int) -> None:
    state, way, crash_at = Path(life["state"]), life["way"], life["crash_at"]
    with (state / "child.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["CONFIGURATION_DIRECTORY"] = str(state / "config")
    os.environ["QA_CRASH_COUNT"] = f"/proc/self/fd/{steps}"
    os.environ |= {name: life[name] for name in ("QA_STOP_AT", "QA_STOP_TRACE") if life.get(name)}
    if crash_at.startswith("b"):
        os.environ["QA_CRASH_BEFORE"] = crash_at[1:]
    elif crash_at:
        os.environ["QA_CRASH_AT"] = crash_at
    try:
        anyio.run(ways[way], state)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def serve(ways: Ways) -> None:
    """Answer until the input ends."""
    gc.freeze()
    for line in sys.stdin:
        life = json.loads(line)
        reader, writer = os.pipe()  # what is in it outlives the child
        pid = os.fork()
        if pid == 0:
            child(ways, life, writer)
        _, status = os.waitpid(pid, 0)
        os.close(writer)
        os.set_blocking(reader, False)
        taken = os.read(reader, 1 << 16) if readable(reader) else b""
        os.close(reader)
        steps = [step.partition(" ")[2] for step in taken.decode().splitlines()]
        print(json.dumps([os.waitstatus_to_exitcode(status), steps]), flush=True)


def readable(reader: int) -> bool:
    return bool(select.select([reader], [], [], 0)[0])
