"""Remove a directory that hostile code has written to, even while it is still running.

`shutil.rmtree` stops at a directory of mode 0 and recurses once per level. Here every step is relative to a
descriptor and follows no link; a directory found inside is first hoisted by rename to the top, so the depth
never exceeds two for any tree, and other file systems are not entered.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.openat import open_beneath

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_ROUNDS = 1000


def rmtree(parent: Path, name: str) -> None:
    """Remove `parent/name` of any kind; `parent` is ours. JailError when something is left.

    A link of that name is removed, not followed. A missing one is fine.
    """
    holder = os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        entry = os.fsencode(name)
        if b"/" in entry or entry in (b"", b".", b".."):
            raise JailError(f"cannot remove {name!r}: not a plain name")
        if not _unlink(holder, entry):
            _remove_tree(holder, entry)
    except OSError as error:
        raise JailError(f"cannot remove {name!r}: {error}", remedy="look for mounts below it") from error
    finally:
        os.close(holder)


def _remove_tree(holder: int, name: bytes) -> None:
    for _ in range(_ROUNDS):  # hostile code may add entries meanwhile; the rounds outlast it
        try:
            top = _open(holder, name)
        except FileNotFoundError:
            return
        try:
            while _clear(top):
                pass
        finally:
            os.close(top)
        try:
            os.rmdir(name, dir_fd=holder)
        except FileNotFoundError:
            return
        except OSError:
            if _unlink(holder, name):
                return
            continue
        return
    raise JailError(f"cannot remove {name!r}: something keeps adding to it", remedy="end the jail first")


def _clear(top: int) -> bool:
    """Empty every directory directly below `top`, hoisting its subdirectories; True if any existed."""
    entries = os.listdir(top)
    for entry in map(os.fsencode, entries):
        if _unlink(top, entry):
            continue
        try:
            inner = _open(top, entry)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise JailError(f"cannot remove {entry!r}: {error}", remedy="look for mounts below it") from error
        try:
            for below in map(os.fsencode, os.listdir(inner)):
                if not _unlink(inner, below):
                    with suppress(FileNotFoundError, NotADirectoryError):
                        # a directory of mode 0 cannot be moved: its `..` changes
                        os.close(_open(inner, below))
                        with suppress(FileNotFoundError):
                            os.rename(below, secrets.token_hex(16).encode(), src_dir_fd=inner, dst_dir_fd=top)
        finally:
            os.close(inner)
        with suppress(OSError):  # not empty any more, or exchanged: the next round sees it
            os.rmdir(entry, dir_fd=top)
    return bool(entries)


def _unlink(directory: int, name: bytes) -> bool:
    """Remove anything but a directory; True when that name is gone."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=directory)
            return True
    except FileNotFoundError:
        return True
    except IsADirectoryError:
        return False
    return False


def _open(directory: int, name: bytes) -> int:
    """Open a directory on the same file system for reading, giving ourselves the right to first."""
    place = open_beneath(directory, name, os.O_PATH | os.O_DIRECTORY)
    try:
        if stat.S_IMODE(os.fstat(place).st_mode) & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{place}", 0o700)
        return open_beneath(place, b".", _DIRECTORY)
    finally:
        os.close(place)
