"""Files of ours: written whole or not at all, read only while they are what they must be.

What must survive a kill or a loss of power is written here; what a stranger may have put in a file's place is
read here. OSError is what fails; `disk_errors` makes it an error that a person can act on.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from fleet.errors import FleetError, TryAgain

Rule = Literal["kind", "owner", "mode", "links", "size", "replaced"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_TRIES = 5
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UnfitFile(OSError):
    """A file that is there and is not believed: `rule` is what it breaks, `strerror` says it in words."""

    strerror: str

    def __init__(self, rule: Rule, reason: str) -> None:
        super().__init__(errno.EPERM, reason)
        self.rule = rule


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600, sync_name: bool = True) -> None:
    """Replace a file in one step, durably: readers see the old one or the new one. The mode is exact.

    Without `sync_name` the old one may be back after a loss of power. The folder must be there.
    """
    draft = _draft(path, data, mode)
    try:
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if sync_name:
        sync_folder(path.parent)


def write_new(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """The same for a name that must be free; FileExistsError when it is taken, by a dangling link too."""
    draft = _draft(path, data, mode)
    try:
        os.link(draft, path, follow_symlinks=False)
    finally:
        os.unlink(draft)
    sync_folder(path.parent)


def _draft(path: Path, data: bytes, mode: int) -> Path:
    """The content under another name in the same folder, on the disk."""
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(draft, _CREATE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            os.fchmod(descriptor, mode)
            handle.write(data)
            handle.flush()
            os.fsync(descriptor)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raises TryAgain when the disk is full, FleetError for any other OSError of the block."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise TryAgain(f"{path}: no space left", remedy="free some disk space") from None
        raise FleetError(f"{path}: {error.strerror}", remedy=f"make {path.parent} writable") from None


def read_owned(
    path: Path, limit: int, *, owner: bool = True, mode: int = 0o022, alone: bool = True, follow: bool = False
) -> bytes:
    """The whole of a regular file of at most `limit` bytes; never waits for the writer of a pipe.

    What was judged before it was read is judged again after, and its name must still mean it; a file that was
    replaced meanwhile is read anew.

    Args:
        owner: it must belong to this user or to root.
        mode: the bits of its mode that it must not have.
        alone: it must have no other name (hard link).
        follow: a symbolic link at the end of the path is followed, not refused.

    Raises:
        UnfitFile: it is not such a file.
        OSError: the system's own, ELOOP for a link.
        ValueError: a NUL in the path.
    """
    for last in (*[False] * (_TRIES - 1), True):
        descriptor = open_regular(path, follow=follow)
        try:
            _judge(os.fstat(descriptor), limit, owner, mode, alone)
            data = _read(descriptor, limit + 1)  # one more, so that a file that grew since is not whole
            _judge(os.fstat(descriptor), limit, owner, mode, alone)
            _same(path, descriptor, follow)
            return data
        except UnfitFile as error:
            if last or error.rule != "replaced":
                raise
        finally:
            os.close(descriptor)
    raise AssertionError("unreachable")


def read_bounded(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """As `read_owned`, for a file that anybody may own, write or link."""
    return read_owned(path, limit, owner=False, mode=0, alone=False, follow=follow)


def open_regular(path: str | Path, *, follow: bool = False) -> int:
    """A descriptor of a regular file, to be closed by the caller; UnfitFile for anything else."""
    descriptor = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnfitFile("kind", "not a regular file")
    return descriptor


def _read(descriptor: int, most: int) -> bytes:
    data = b""
    while len(data) < most and (chunk := os.read(descriptor, most - len(data))):
        data += chunk
    return data


def _judge(found: os.stat_result, limit: int, owner: bool, mode: int, alone: bool) -> None:
    if owner and found.st_uid not in (0, os.geteuid()):
        raise UnfitFile("owner", f"belongs to another user ({found.st_uid})")
    if found.st_mode & mode:
        letting = f"mode {stat.S_IMODE(found.st_mode):04o} lets others in"
        raise UnfitFile("mode", letting if mode & 0o055 else "writable by others")
    if found.st_nlink == 0:
        raise UnfitFile("replaced", "replaced repeatedly")
    if alone and found.st_nlink != 1:
        raise UnfitFile("links", "has other names (hard links)")
    if found.st_size > limit:
        raise UnfitFile("size", f"larger than {limit} bytes")


def _same(path: Path, descriptor: int, follow: bool) -> None:
    """What was read is what the name means now: a link elsewhere keeps a replaced file's count at one."""
    try:
        here = os.path.samestat(os.stat(path, follow_symlinks=follow), os.fstat(descriptor))
    except FileNotFoundError:
        here = False
    if not here:
        raise UnfitFile("replaced", "replaced repeatedly")
