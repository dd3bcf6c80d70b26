"""The changes that a jail has made to its copy of a tree, read from its stream and made here.

The stream is hostile: it is bounded by the jail's limits, each record is checked, every path is opened
beneath the tree and through no link. See `sandbox/trees/changes.py` for its form.
"""

from __future__ import annotations

import base64
import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from fleet.errors import JailError, PatchRefused
from fleet.jail.model import Limits
from fleet.jail.openat import open_beneath
from fleet.jail.rmtree import rmtree
from sandbox import strict_json
from sandbox.trees.changes import FILE, FOLDER, GONE, LINK, OTHER

RECORD = 256
"""Bytes that a record has room for beside its content, on average."""
_LINE = 16 << 10
_PIECE = 1 << 18
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def full(most: int) -> PatchRefused:
    """The refusal of what has filled the disk of its jail."""
    return PatchRefused(f"it has filled its disk: more than {most >> 20} MiB, or too many files", rule="disk")


def apply_changes(tree: Path, stream: BinaryIO, limits: Limits) -> None:
    """Make every change of the stream; the tree is ours, and nothing else writes to it.

    PatchRefused `disk` for a full disk, JailError for a stream that is not one of ours.
    """
    start = stream.tell()
    if _checked(stream, limits):
        raise full(limits.box)
    stream.seek(start)
    top = os.open(tree, _FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while "end" not in (record := _record(stream)):
            _apply(tree, top, record, stream)
    except OSError as error:
        raise JailError(f"what the jail has changed cannot be written: {error.strerror}") from None
    finally:
        os.close(top)


def _checked(stream: BinaryIO, limits: Limits) -> bool:
    """Read the whole stream before anything is changed; whether the disk was full."""
    size = count = 0
    while "end" not in (record := _record(stream)):
        size += record["size"]
        count += 1
        if size > limits.box or count > limits.inodes:
            return True
        stream.seek(record["size"], os.SEEK_CUR)
    if stream.read(1):
        raise JailError("the jail of the tree returned more than its changes")
    return bool(record["full"])


def _record(stream: BinaryIO) -> dict[str, Any]:
    """One record with `path` and `target` as bytes; JailError for anything else."""
    try:
        said = strict_json.loads(stream.readline(_LINE))
        if said.get("end") is True:
            return {"end": True, "full": bool(said["full"])}
        kind, size = said["kind"], said.get("size", 0)
        found = {"kind": kind, "size": size, "runs": said.get("runs") is True}
        found["path"] = path = base64.b64decode(said["path"], validate=True)
        found["target"] = base64.b64decode(said.get("target", ""), validate=True)
        found["mtime"] = said.get("mtime", 0)
        bad = kind not in (FILE, FOLDER, GONE, LINK, OTHER) or b"\0" in path + found["target"]
        bad = bad or any(part in (b"", b".", b"..") for part in path.split(b"/"))
        bad = bad or any(type(found[key]) is not int for key in ("size", "mtime")) or size < 0
        if bad or abs(found["mtime"]) >= 1 << 62 or (size and kind != FILE):
            raise ValueError("not a change")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JailError(f"the jail of the tree returned garbage: {type(error).__name__}") from None
    return found


def _apply(tree: Path, top: int, record: dict[str, Any], stream: BinaryIO) -> None:
    path, kind = record["path"], record["kind"]
    folder, _, name = path.rpartition(b"/")
    try:
        at = open_beneath(top, folder or b".", _FOLDER)
    except OSError as error:
        if kind == GONE and error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return  # with the folder that it was in
        raise
    try:
        _clear(tree, at, folder, name, keep=kind == FOLDER)
        if kind == FOLDER:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=at)
        elif kind == LINK:
            os.symlink(record["target"], name, dir_fd=at)
        elif kind == OTHER:
            os.mkfifo(name, 0o600, dir_fd=at)  # judged as what no patch can hold
        elif kind == FILE:
            with os.fdopen(os.open(name, _NEW, 0o755 if record["runs"] else 0o644, dir_fd=at), "wb") as file:
                left = record["size"]
                while left and (piece := stream.read(min(left, _PIECE))):
                    file.write(piece)
                    left -= len(piece)
                file.flush()
                os.utime(file.fileno(), ns=(record["mtime"], record["mtime"]))
            if left:
                raise JailError("the jail of the tree returned less than its changes")
    finally:
        os.close(at)


def _clear(tree: Path, at: int, folder: bytes, name: bytes, *, keep: bool) -> None:
    """Remove what has that name; with `keep` not a folder."""
    try:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        os.unlink(name, dir_fd=at)
    elif not keep:
        rmtree(tree / os.fsdecode(folder), os.fsdecode(name))
