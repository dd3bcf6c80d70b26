"""Root's way to show private files to an unprivileged bubblewrap.

A root daemon starts its jails as another user, and that user cannot walk to an interpreter below /root;
bubblewrap resolves the path of even a descriptor it is given. So one thread with a mount namespace of its own
holds the sources, bound read-only under neutral names, and starts all jails. No process, no mount that the
host can see, nothing to clean up: the namespace ends with the thread and its jails.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from fleet.errors import JailError

_CLONE_NEWNS = 0x20000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_ROOM = "/run"

T = TypeVar("T")


class Staging:
    """A thread whose `/run` holds the given sources, each `(path, name, writable)`.

    A writable one is given to `owner` and never reached through a symlink.
    """

    def __init__(self, sources: Sequence[tuple[Path, str, bool]], owner: int) -> None:
        self._thread = ThreadPoolExecutor(1, "jails")
        try:
            self._thread.submit(_furnish, sources, owner).result()
        except OSError as error:
            self._thread.shutdown()
            raise JailError(
                f"cannot prepare jails as root: {error.filename}: {error.strerror}",
                remedy="run the fleet as an ordinary user, or give it CAP_SYS_ADMIN",
            ) from error

    def path(self, name: str) -> str:
        return f"{_ROOM}/{name}"

    def submit(self, work: Callable[[], T]) -> Future[T]:
        return self._thread.submit(work)

    def close(self) -> None:
        self._thread.shutdown()


def _furnish(sources: Sequence[tuple[Path, str, bool]], owner: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "mount namespace")
    _mount(libc, "none", "/", "", _MS_REC | _MS_PRIVATE)
    opened = [(_open(path, writable), name, writable) for path, name, writable in sources]
    _mount(libc, "none", _ROOM, "tmpfs", _MS_NOSUID | _MS_NODEV, b"size=64k,mode=0755")
    for fd, name, writable in opened:
        place = Path(_ROOM, name)
        place.mkdir()
        if writable:
            os.chown(f"/proc/self/fd/{fd}", owner, owner)
        _mount(libc, f"/proc/self/fd/{fd}", str(place), "", _MS_BIND | (0 if writable else _MS_REC))
        os.close(fd)
        lock = _MS_REMOUNT | _MS_BIND | _MS_NOSUID | _MS_NODEV | (0 if writable else _MS_RDONLY)
        _mount(libc, "none", str(place), "", lock)


def _open(path: Path, writable: bool) -> int:
    """Open a source before `/run` is covered: it may lie there."""
    flags = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY
    return os.open(path, flags | os.O_NOFOLLOW if writable else flags)


def _mount(
    libc: ctypes.CDLL, source: str, target: str, kind: str, flags: int, options: bytes | None = None
) -> None:
    if libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)
