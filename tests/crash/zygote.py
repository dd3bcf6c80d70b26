"""Imports everything once, then forks one fleet per line of input: `STATE CRASH_AT` (0 never, b7 before 7).

Each child recovers what is there, fires the personas of `STATE/personas`, and leaves by `_exit`: a real
process with real signals, without a second of imports per trial. Answers each line with the child's wait
status and steps.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import anyio

from fleet.cli.daemon import open_world
from fleet.cli.roster import roster
from fleet.runs.life import fire, recover


async def live(state: Path, *, exercise: bool) -> None:
    personas, errors = roster(state / "personas")
    assert not errors, errors
    async with open_world(state, personas=personas, platform="devnet") as world:
        reports = await recover(world)
        if exercise and not reports:
            reports = [await fire(world, persona) for persona in personas.values()]
        assert all(report.settled for report in reports), reports


def child(state: Path, crash_at: str) -> None:
    with (state / "child.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["QA_CRASH_COUNT"] = str(state / "steps")
    if crash_at.startswith("b"):
        os.environ["QA_CRASH_BEFORE"] = crash_at[1:]
    elif crash_at != "0":
        os.environ["QA_CRASH_AT"] = crash_at
    try:
        anyio.run(lambda: live(state, exercise=True))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    for line in sys.stdin:
        state, crash_at = line.split()
        pid = os.fork()
        if pid == 0:
            child(Path(state), crash_at)
        _, status = os.waitpid(pid, 0)
        steps = Path(state, "steps")
        print(
            os.waitstatus_to_exitcode(status),
            steps.read_text().strip() if steps.exists() else "0",
            flush=True,
        )


if __name__ == "__main__":
    main()
