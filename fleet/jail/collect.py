"""Take a file out of a directory that hostile code has written to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.openat import open_beneath


def collect(directory: Path, name: str, *, cap: int) -> bytes:
    """Return the content of one regular file of at most `cap` bytes.

    JailError for anything else: a link of either kind, a FIFO (which would make the reader wait), a device,
    a directory, a file that says it is bigger or that grows while it is read, a way out of the directory.
    """
    try:
        top = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fd = open_beneath(top, os.fsencode(name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        finally:
            os.close(top)
        try:
            return _read(fd, name, cap)
        finally:
            os.close(fd)
    except (OSError, ValueError) as error:
        raise JailError(f"cannot take {name!r} out of the jail: {error}") from error


def _read(fd: int, name: str, cap: int) -> bytes:
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode):
        raise JailError(f"cannot take {name!r} out of the jail: not a regular file")
    if facts.st_nlink != 1:
        raise JailError(f"cannot take {name!r} out of the jail: it has another name")
    if facts.st_size > cap:
        raise JailError(f"cannot take {name!r} out of the jail: more than {cap} bytes")
    content = b""
    while chunk := os.read(fd, min(1 << 20, cap + 1 - len(content))):
        content += chunk
        if len(content) > cap:
            raise JailError(f"cannot take {name!r} out of the jail: more than {cap} bytes")
    return content
