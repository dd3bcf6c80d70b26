"""Retention of run folders: until one is old, or all are too large; never while something is owed.

Kept at any age: a run that is not over, one that still holds a name or a key, one whose finding is on the log
or on its way there (the entry contains its evidence's hash), and a folder unknown to the journal. The run's
row stays too, so that a firing never starts a second run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from anyio import to_thread

from fleet.clock import iso
from fleet.config import KeepSection
from fleet.errors import JailError
from fleet.jail.rmtree import rmtree
from fleet.store.journal import Journal

FRESH = timedelta(hours=1)
"""Minimum age even on a full disk: it may still be in use, and a reorg may undo its effects."""
MEGABYTE = 1_000_000
BLOCK, INODE = 512, 512
"""Bytes: the unit of `st_blocks`, and what the largest of the usual file systems (XFS) takes for an inode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """The folder of one run. `ended` is "" while it must be kept."""

    run: str
    bytes: int
    ended: str


async def look(state: Path, journal: Journal) -> list[RunFolder]:
    """The folders of all runs on this host. Reads the disk: takes seconds for many."""
    sizes = await to_thread.run_sync(_sizes, state / "runs")
    over = await journal.over(sizes)
    return [RunFolder(run=run, bytes=size, ended=over.get(run, "")) for run, size in sizes.items()]


def choose(kept: Sequence[RunFolder], keep: KeepSection, now: datetime) -> list[RunFolder]:
    """The folders to remove, oldest first: expired ones, then those beyond the size limit."""
    free = sorted((one for one in kept if one.ended), key=lambda one: (one.ended, one.run))
    old = iso(now - timedelta(days=keep.days)) if keep.days else ""
    fresh = iso(now - FRESH)
    excess = sum(one.bytes for one in kept) - keep.megabytes * MEGABYTE if keep.megabytes else 0
    gone = []
    for one in free:
        if not (one.ended < old or (excess > 0 and one.ended < fresh)):
            break
        gone.append(one)
        excess -= one.bytes
    return gone


async def remove(state: Path, journal: Journal, one: RunFolder) -> bool:
    """Remove the details first, then the folder: the next pass completes an interrupted removal."""
    if not await journal.forget(one.run):
        return False
    await to_thread.run_sync(rmtree, (state / "runs").resolve(), one.run)
    return True


async def tidy(
    state: Path, journal: Journal, keep: KeepSection, now: datetime
) -> tuple[list[RunFolder], list[JailError]]:
    """Select and remove; return what was removed and what failed, which does not block the rest."""
    gone, stuck = list[RunFolder](), list[JailError]()
    for one in choose(await look(state, journal), keep, now):
        try:
            if await remove(state, journal, one):
                gone.append(one)
        except JailError as error:
            stuck.append(JailError(f"run {one.run}: {error}", remedy=error.remedy))
    if keep.days:
        await journal.forget_before(iso(now - timedelta(days=keep.days))[:10])
    return gone, stuck


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes on disk of each run.

    Links are not followed; what disappears meanwhile, or is too deep, is not counted.
    """
    sizes: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as runs:
        for run in runs:
            if run.is_dir(follow_symlinks=False):
                sizes[run.name] = _size(run.path)
    return sizes


def _size(top: str) -> int:
    """Blocks and inodes: a file of ten bytes takes 4096, and a folder takes space too."""
    size, waiting = 0, [top]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            size += os.lstat(folder).st_blocks * BLOCK + INODE
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_blocks * BLOCK + INODE
    return size
