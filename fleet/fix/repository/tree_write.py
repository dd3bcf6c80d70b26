"""Writing into a work tree that hostile code has written to: through no link, never out of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fleet.errors import FixError
from fleet.jail.jail_spec import UNPRIVILEGED
from fleet.jail.openat import open_beneath
from fleet.text import line

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def put_file(tree: Path, path: str, text: bytes) -> None:
    """Write one file beneath the tree, its folders made; one that is there is replaced, a link not followed.

    FixError: a path that leads elsewhere, or through something that is not a folder.
    """
    parts = os.fsencode(path).split(b"/")
    if any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts):
        raise FixError(f"{line(path, 120)}: not a path in a repository")
    top = os.open(tree, _FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        folder = _folder(top, parts[:-1])
        try:
            _write(folder, parts[-1], text)
        finally:
            os.close(folder)
    except OSError as error:
        raise FixError(f"{line(path, 120)}: cannot be written: {error.strerror}") from None
    finally:
        os.close(top)


def take_over(tree: Path) -> None:
    """Give the tree to the user of the jails; only a root daemon has one (jail_spec.py)."""
    if os.geteuid() != 0:
        return
    for _, folders, names, descriptor in os.fwalk(tree, follow_symlinks=False):
        for name in (*folders, *names):
            os.chown(name, UNPRIVILEGED, UNPRIVILEGED, dir_fd=descriptor, follow_symlinks=False)
    os.chown(tree, UNPRIVILEGED, UNPRIVILEGED, follow_symlinks=False)


def _folder(top: int, parts: list[bytes]) -> int:
    """Open a folder beneath `top`, made where it is missing; the caller closes it."""
    here = open_beneath(top, b".", _FOLDER)
    for part in parts:
        try:
            try:
                os.mkdir(part, 0o755, dir_fd=here)
                _give(part, here)
            except FileExistsError:
                pass
            inner = open_beneath(here, part, _FOLDER)
        finally:
            os.close(here)
        here = inner
    return here


def _write(folder: int, name: bytes, text: bytes) -> None:
    draft = b".qa-" + secrets.token_hex(8).encode()
    try:
        with os.fdopen(os.open(draft, _NEW, 0o644, dir_fd=folder), "wb") as handle:
            handle.write(text)
        _give(draft, folder)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise


def _give(name: bytes, folder: int) -> None:
    if os.geteuid() == 0:
        os.chown(name, UNPRIVILEGED, UNPRIVILEGED, dir_fd=folder, follow_symlinks=False)
