"""Atomic writes of small files, safe against a kill at any moment."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from fleet.errors import FleetError, TryAgain

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Writes, flushes to disk, then renames into place; parents are made 0700.

    Raises TryAgain when the disk is full and FleetError for any other failure; the old file is then intact.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            _write(temporary, data, mode)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        if error.errno in _FULL:
            raise TryAgain(f"{path}: no space left", remedy="free some disk space") from None
        raise FleetError(f"{path}: {error.strerror}", remedy=f"make {path.parent} writable") from None


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bounded(path: Path, limit: int) -> bytes:
    """At most `limit` bytes of a file; OSError for a link or a larger one; never blocks on a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as handle:
        data = handle.read(limit + 1) or b""
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes")
    return data
