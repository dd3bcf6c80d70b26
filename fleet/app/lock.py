"""One process per state directory. The kernel holds the lock, so a killed process leaves none behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet.errors import TryAgain


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Hold `fleet.lock` during the block; TryAgain, naming the holder, if another process has it."""
    handle = os.open(state / "fleet.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            raise TryAgain(
                f"another fleet (pid {holder}) is using {state}",
                remedy="wait for it, or set STATE_DIRECTORY to another folder",
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)


def holder(state: Path) -> int:
    """Pid of the process that holds the lock, 0 for none, from the kernel.

    Trying the lock would also tell, but could make a daemon fail that starts at that instant.
    """
    try:
        inode = os.stat(state / "fleet.lock").st_ino
        locks = Path("/proc/locks").read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return 0
    for line in locks.splitlines():
        words = line.split()
        if words[1:2] == ["FLOCK"] and words[5].endswith(f":{inode}"):
            return int(words[4])
    return 0
