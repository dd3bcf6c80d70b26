"""One process per state directory. The kernel holds the lock, so a killed process leaves none behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from fleet.clock import iso, minute
from fleet.errors import ConfigError, TryAgain
from fleet.files import FULL, disk_errors, disk_refused
from fleet.text import line


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
            raise TryAgain(
                held(state),
                remedy="run it again when that has ended (fleet run PERSONA --wait waits for it), or set"
                " STATE_DIRECTORY to another folder",
            ) from None
        with disk_errors(path):
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)


def held(state: Path) -> str:
    """Which process holds the lock, since when, and its command, in words."""
    path = state / "fleet.lock"
    with suppress(OSError, ValueError):  # without /proc, when it has just ended, or for a lock without a pid
        pid = holder(state) or int(path.read_text("ascii", "replace").strip() or 0)
        since = minute(iso(datetime.fromtimestamp(path.stat().st_mtime, UTC)))
        words = Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").split("\0")
        own = [at for at, word in enumerate(words) if Path(word).name in ("fleet", "__main__.py")]
        command = " ".join(["fleet", *words[own[0] + 1 :]] if own else words)
        return f"another fleet (pid {pid}) is using {state}: {line(command, 120)}, since {since} UTC"
    return f"another fleet is using {state}"


def holder(state: Path) -> int:
    """Pid of the process that holds the lock, 0 for none, from the kernel.

    Trying the lock would also tell, but could make a daemon fail that starts at that instant.
    """
    try:
        inode = os.stat(state / "fleet.lock").st_ino
        locks = Path("/proc/locks").read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return 0
    for row in locks.splitlines():
        words = row.split()
        if words[1:2] == ["FLOCK"] and words[5].endswith(f":{inode}"):
            return int(words[4])
    return 0
