"""A run that is killed at the first call of a proof: `python -m tests.runs.killed_in_proof FOLDER`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from tests.runs.table import persona, seated
from tests.runs.test_desk import ANY
from tests.runs.test_nothing_lost import breaks, fetch, raised


async def main(root: Path) -> None:
    proving = False

    async def dies(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        if proving:
            os.kill(os.getpid(), signal.SIGKILL)
        return await breaks(tool, args)

    async with seated(root, persona(), hand=ANY, answer=dies) as table:
        await raised(table, fetch("leak-a"), fetch("bad-b"))
        proving = True
        await table.drive.runner.prove_raised()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
