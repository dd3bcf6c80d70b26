"""Retention of run folders: until one is old, or all are too large; never while something is owed.

For size alone a young run loses what is no record (its subfolders: evidence, pictures), never its records.

Kept at any age: a run that is not over, one that still holds a name or a key, one whose finding is on the log
or on its way there (the entry contains its evidence's hash), and a folder unknown to the journal. The run's
row stays too, so that a firing never starts a second run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
    """The folder of one run. `ended` is "" while it must be kept; `bulk` are the bytes of its subfolders,
    which are no record. `records_stay`: only those are to be removed."""

    run: str
    bytes: int
    ended: str
    bulk: int = 0
    records_stay: bool = False


async def look(state: Path, journal: Journal) -> list[RunFolder]:
    """The folders of all runs on this host. Reads the disk: takes seconds for many."""
    sizes = await to_thread.run_sync(_sizes, state / "runs")
    over = await journal.over(sizes)
    return [
        RunFolder(run=run, bytes=size, ended=over.get(run, ""), bulk=bulk)
        for run, (size, bulk) in sizes.items()
    ]


def choose(
    kept: Sequence[RunFolder], keep: KeepSection, now: datetime, engaged: datetime | None = None
) -> list[RunFolder]:
    """What to remove, oldest first: expired folders, then those beyond the size limit, of which the records
    stay for their time. `engaged` is the end of the tests that the profile states."""
    free = sorted((one for one in kept if one.ended), key=lambda one: (one.ended, one.run))
    old = iso(now - timedelta(days=keep.days)) if keep.days else ""
    fresh, least = iso(now - FRESH), timedelta(days=keep.record_days)
    over = engaged is None or now >= engaged + least
    settled = (iso(now - least) if over else "") if least else fresh
    excess = beyond(kept, keep)
    gone = []
    for one in free:
        if not (one.ended < old or (excess > 0 and one.ended < fresh)):
            break
        if one.ended < settled:
            gone.append(one)
            excess -= one.bytes
        elif one.bulk:
            gone.append(replace(one, bytes=one.bulk, records_stay=True))
            excess -= one.bulk
    return gone


def beyond(kept: Sequence[RunFolder], keep: KeepSection) -> int:
    """Bytes beyond the size limit; 0 or less within it."""
    return sum(one.bytes for one in kept) - keep.megabytes * MEGABYTE if keep.megabytes else 0


async def remove(state: Path, journal: Journal, one: RunFolder) -> bool:
    """Remove the details first, then the folder: the next pass completes an interrupted removal."""
    runs = (state / "runs").resolve()
    if one.records_stay:
        if not (await journal.over([one.run])).get(one.run):
            return False
        for name in await to_thread.run_sync(_subfolders, runs / one.run):
            await to_thread.run_sync(rmtree, runs / one.run, name)
        return True
    if not await journal.forget(one.run):
        return False
    await to_thread.run_sync(rmtree, runs, one.run)
    return True


async def tidy(
    state: Path, journal: Journal, keep: KeepSection, now: datetime, engaged: datetime | None = None
) -> tuple[list[RunFolder], list[JailError]]:
    """Select and remove; return what was removed and what failed, which does not block the rest."""
    gone, stuck = list[RunFolder](), list[JailError]()
    for one in choose(await look(state, journal), keep, now, engaged):
        try:
            if await remove(state, journal, one):
                gone.append(one)
        except JailError as error:
            stuck.append(JailError(f"run {one.run}: {error}", remedy=error.remedy))
    if keep.days:
        await journal.forget_before(iso(now - timedelta(days=keep.days))[:10])
    return gone, stuck


def _sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Bytes on disk of each run, and those of its subfolders.

    Links are not followed; what disappears meanwhile, or is too deep, is not counted.
    """
    sizes: dict[str, tuple[int, int]] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as runs:
        for run in runs:
            if run.is_dir(follow_symlinks=False):
                bulk = sum(_size(os.path.join(run.path, name)) for name in _subfolders(Path(run.path)))
                sizes[run.name] = (_size(run.path), bulk)
    return sizes


def _subfolders(folder: Path) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


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
