"""One process per state directory. The kernel holds the lock, so a killed process leaves none behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet.errors import ConfigError, TryAgain
from fleet.files import FULL, disk_errors, disk_refused


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Hold `fleet.lock` during the block; TryAgain, naming the holder, if another process has it, or if the
    disk takes nothing; ConfigError if this user may not write there."""
    path = state / "fleet.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno in FULL:
            raise disk_refused(path, error) from None
        remedy = "make the state directory writable for this user, and the lock a plain file"
        raise ConfigError(f"{path}: {error.strerror}", remedy=remedy) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            raise TryAgain(
                f"another fleet (pid {holder}) is using {state}",
                remedy="wait for it, or set STATE_DIRECTORY to another folder",
            ) from None
        with disk_errors(path):
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
