"""What a command has changed in its copy of a tree, as a stream: the one way in which changes are kept.

The jail works on a disk of its own, of a fixed size; nothing of it is the host's. Each record is a JSON line,
for a file followed by as many bytes as its size; the last one says whether that disk was full.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from sandbox.errors import JailBroken

LINK, FILE, FOLDER, OTHER, GONE = "link", "file", "folder", "other", "gone"
_PATH = 4_000
"""Most bytes of a path: more can be made, one folder at a time, and not be named."""
_PIECE = 1 << 18
_ROOM = 1 << 16
"""Bytes and names; a disk with less is full."""


def is_full(folder: str) -> bool:
    """Whether the disk of a folder has no room left, by what it holds and not by what has a name."""
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize < _ROOM or room.f_favail < _ROOM >> 8


def write_changes(box: str, tree: str, out: BinaryIO, *, full: bool) -> None:
    """Write what `box` has otherwise than `tree`; what still runs is ended first, so that it stands still."""
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    try:
        there = set()
        for path, seen in _walk(box):
            there.add(path)
            if not _same(path, seen, box, tree):
                place = os.path.join(os.fsencode(box), path)
                if stat.S_ISDIR(seen.st_mode):
                    _say(out, path, FOLDER)
                elif stat.S_ISLNK(seen.st_mode):
                    _say(out, path, LINK, target=_text(os.readlink(place)))
                elif not stat.S_ISREG(seen.st_mode):
                    _say(out, path, OTHER)
                else:
                    runs = bool(seen.st_mode & stat.S_IXUSR)
                    _say(out, path, FILE, size=seen.st_size, runs=runs, mtime=seen.st_mtime_ns)
                    left = seen.st_size
                    with open(_opened(place, 0o600), "rb") as file:
                        while left and (piece := file.read(min(left, _PIECE))):
                            out.write(piece)
                            left -= len(piece)
                    if left:
                        raise OSError(5, "a file of it changes while it is read")
        for path, _ in _walk(tree):
            if path not in there:
                _say(out, path, GONE)
    except OSError as error:
        raise JailBroken(f"the tree cannot be read: {error.strerror}") from None
    out.write(json.dumps({"end": True, "full": full}).encode() + b"\n")


def _walk(top: str) -> Iterator[tuple[bytes, os.stat_result]]:
    """Everything below, folders before what is in them; nothing is followed."""
    root = os.fsencode(top)
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        for name in sorted(os.listdir(_opened(os.path.join(root, folder), 0o700))):
            path = folder + name
            if len(path) > _PATH:
                raise OSError(36, "a path of it is too long")
            seen = os.lstat(os.path.join(root, path))
            yield path, seen
            if stat.S_ISDIR(seen.st_mode):
                waiting.append(path + b"/")


def _opened(path: bytes, mode: int) -> bytes:
    """The same path, after we may read it: the jail's user owns all that it made."""
    if not os.access(path, os.R_OK | (os.X_OK if mode & 0o100 else 0)):
        os.chmod(path, mode)
    return path


def _same(path: bytes, seen: os.stat_result, box: str, tree: str) -> bool:
    before = os.path.join(os.fsencode(tree), path)
    try:
        known = os.lstat(before)
    except OSError:
        return False
    if stat.S_IFMT(known.st_mode) != stat.S_IFMT(seen.st_mode):
        return False
    if stat.S_ISDIR(seen.st_mode):
        return True
    now = os.path.join(os.fsencode(box), path)
    if stat.S_ISLNK(seen.st_mode):
        return os.readlink(before) == os.readlink(now)
    alike = ("st_size", "st_mtime_ns")
    if any(getattr(known, name) != getattr(seen, name) for name in alike):
        return False
    if (known.st_mode ^ seen.st_mode) & stat.S_IXUSR:
        return False
    with open(before, "rb") as old, open(_opened(now, 0o600), "rb") as new:
        while piece := old.read(_PIECE):
            if piece != new.read(_PIECE):
                return False
    return True


def _say(out: BinaryIO, path: bytes, kind: str, **more: Any) -> None:  # noqa: ANN401  members of a JSON line
    out.write(json.dumps({"path": _text(path), "kind": kind, **more}).encode() + b"\n")


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
