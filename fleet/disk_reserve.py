"""Reserved space: a file in the state directory that is deleted when the disk is full.

On a full disk even the smallest write fails, so runs in flight could not be brought to a recorded end. Like
the dial and STOP this is a file, not memory: while it is missing, a daemon starts no new run.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from pathlib import Path
from typing import NamedTuple

BALLAST = "ballast"
PROBE = ".writable"
_FULL = "the disk is full"
SIZE = 16 << 20
"""Bytes: four times the journal's largest log (4 MiB)."""
LOW = 4 << 20
"""Bytes free below which the disk counts as full."""
FEW = 1_000
"""Inodes free below which it does too: a run makes about twenty files."""


def look(state: Path) -> str:
    """One look at the disk: deletes the ballast when space is short, creates it when there is plenty.

    Returns "" when healthy, else one line that says why no run may start. Never raises.
    """
    why = unwritable(state)
    if why and why != _FULL:
        return why
    few = _free(state).inodes < 2 * FEW
    if laid(state):
        if not _short(state) and not why:
            return ""
        give_up(state)
    elif not _short(state, SIZE + 2 * LOW, 2 * FEW) and _lay(state):
        return ""
    found = _free(state)
    left = f"{found.inodes:.0f} inodes" if few else f"{found.bytes >> 20} MiB"
    return f"the disk is full: {left} free"


def unwritable(state: Path) -> str:
    """Why the state directory takes no byte now, found by writing one; "" when it does."""
    path = state / PROBE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, b".")
        finally:
            os.close(descriptor)
            path.unlink(missing_ok=True)
    except OSError as error:
        if error.errno == errno.EROFS:
            return "the disk is read-only"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):  # free space says the rest
            return _FULL
        return f"the state directory cannot be written: {error.strerror}"
    return ""


def read_only(state: Path) -> bool:
    """Whether its file system is mounted read-only, by asking alone."""
    try:
        return bool(os.statvfs(state).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def room(state: Path) -> tuple[bool, str]:
    """Whether a run may start by the space that is free, and what is free; nothing is left changed."""
    why = unwritable(state)
    if why and why != _FULL:
        return False, why
    found = _free(state)
    short = _short(state) if laid(state) else _short(state, SIZE + 2 * LOW, 2 * FEW)
    inodes = "" if math.isinf(found.inodes) else f", {found.inodes:.0f} inodes"
    return not (short or why), f"{found.bytes >> 20} MiB{inodes} free"


def relieve(state: Path) -> bool:
    """Delete the ballast if the disk is full now; returns whether it is."""
    full = _short(state)
    if full:
        give_up(state)
    return full


def give_up(state: Path) -> None:
    """Make room immediately; a no-op without ballast."""
    with contextlib.suppress(OSError):
        (state / BALLAST).unlink()


class _Free(NamedTuple):
    bytes: int
    inodes: float


def _short(state: Path, low: int = LOW, few: int = FEW) -> bool:
    found = _free(state)
    return found.bytes < low or found.inodes < few


def _free(state: Path) -> _Free:
    """What this user may still write; None when unknown. Not every file system counts inodes."""
    try:
        found = os.statvfs(state)
    except OSError:
        return _Free(0, math.inf)
    return _Free(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else math.inf)


def laid(state: Path) -> bool:
    """Whether space is reserved now. Without it a running daemon is degraded."""
    try:
        return os.lstat(state / BALLAST).st_size == SIZE
    except OSError:
        return False


def _lay(state: Path) -> bool:
    """Allocated block by block: a sparse file would reserve nothing."""
    path = state / BALLAST
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # a smaller one, of a process killed while creating it
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, SIZE)
        finally:
            os.close(descriptor)
    except OSError:
        give_up(state)
        return False
    return True
