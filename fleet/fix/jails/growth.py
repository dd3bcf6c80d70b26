"""A bound on what a jail writes into a work tree: a folder of this machine, without a size of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

from anyio.to_thread import run_sync

from fleet.errors import PatchRefused

MOST = 1 << 30
"""Bytes on disk that a work tree may have while a fixer works on it, its build included."""
ENTRIES = 200_000
"""Files and folders of it; beyond the bound on a work tree, no patch would be made of it either."""
LOOK_S = 0.25

T = TypeVar("T")


async def within_bounds(tree: Path, work: Coroutine[None, None, T]) -> T:
    """Do the work while the tree stays within its bounds; else cancel it, and PatchRefused `disk`."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait((task,), timeout=LOOK_S))[0]:
            if not await run_sync(_fits, tree, MOST):
                raise PatchRefused(
                    f"the work tree has more than {MOST >> 20} MiB or too many files", rule="disk"
                )
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _fits(tree: Path, most: int) -> bool:
    """Whether bytes and entries are within bounds; nothing is followed.

    What vanishes meanwhile is not counted; a folder that cannot be read could hold anything.
    """
    size = count = 0
    closed: list[OSError] = []
    for _, folders, files, at in os.fwalk(tree, follow_symlinks=False, onerror=closed.append):
        for name in (*folders, *files):
            count += 1
            try:
                size += os.stat(name, dir_fd=at, follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
        if size > most or count > ENTRIES:
            return False
    return not any(isinstance(error, PermissionError) for error in closed)
