"""What lies in a work tree that hostile code has written to: seen as it is, nothing followed.

Every step is relative to a descriptor of the tree and resolves beneath it. What cannot be part of a patch
(a pipe, a device, a repository of its own) is refused here; the rest is compared with the base, and judged
by the rules of patches.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleet.errors import PatchRefused
from fleet.jail.openat import open_beneath
from fleet.text import line

ENTRIES = 200_000
"""Most files of a tree, those of a build included."""
CONTENT = 4 * 1024 * 1024
"""Most bytes of a file that is new or changed."""
CHANGED = 500
"""Most files that are new or changed; `[propose] files` is far below it."""
_PIECE = 1 << 20
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
LINK, FILE, PROGRAM = "120000", "100644", "100755"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file as git names it. `size` is in bytes; `oid` is the object of the base, "" in a work tree.

    `mode` is "" for what git cannot hold, with the reason in `unfit`.
    """

    mode: str
    size: int
    oid: str = ""
    unfit: str = ""


def refused(rule: str, path: bytes, why: str) -> PatchRefused:
    """A refusal that names a path of the tree."""
    return PatchRefused(f"{line(os.fsdecode(path), 120) or '(no name)'}: {why}", rule=rule)


def scan(tree: Path) -> dict[bytes, TreeEntry]:
    """Everything in the tree but folders, by path. PatchRefused: too much, or not to be read."""
    top = _top(tree)
    found: dict[bytes, TreeEntry] = {}
    waiting = [b""]
    try:
        while waiting:
            folder = waiting.pop()
            for name in _names(top, folder):
                path = folder + name
                entry = _look(top, path)
                if entry is None:
                    waiting.append(path + b"/")
                else:
                    found[path] = entry
                if len(found) + len(waiting) > ENTRIES:
                    raise PatchRefused(f"more than {ENTRIES} files in the work tree", rule="entries")
    finally:
        os.close(top)
    return found


def differing(
    tree: Path, found: Mapping[bytes, TreeEntry], base: Mapping[bytes, TreeEntry], algorithm: str
) -> list[bytes]:
    """Paths of the tree that the base has not, or has otherwise. `algorithm` names git's objects."""
    top = _top(tree)
    try:
        return [path for path, entry in found.items() if not _same(top, path, entry, base, algorithm)]
    finally:
        os.close(top)


def content(tree: Path, path: bytes, entry: TreeEntry) -> bytes:
    """The content of a file, or the target of a link; PatchRefused when it is too large."""
    top = _top(tree)
    try:
        if entry.mode == LINK:
            return _target(top, path)
        data = b"".join(_pieces(top, path, CONTENT + 1))
    finally:
        os.close(top)
    if len(data) > CONTENT:
        raise refused("size", path, f"larger than {CONTENT} bytes")
    return data


def colliding(new: Sequence[bytes], base: Mapping[bytes, TreeEntry]) -> bytes | None:
    """A new path that differs from another one only in upper and lower case."""
    known = {path.lower(): path for path in base}
    for path in new:
        if known.setdefault(path.lower(), path) != path:
            return path
    return None


def _top(tree: Path) -> int:
    return os.open(tree, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _names(top: int, folder: bytes) -> list[bytes]:
    descriptor = _open(top, folder.rstrip(b"/") or b".", _OPEN | os.O_DIRECTORY)
    try:
        with os.scandir(descriptor) as entries:
            names = [os.fsencode(entry.name) for entry, _ in zip(entries, range(ENTRIES + 1), strict=False)]
    finally:
        os.close(descriptor)
    return sorted(names)


def _look(top: int, path: bytes) -> TreeEntry | None:
    """What one name is; None for a folder to be entered."""
    name = path.rpartition(b"/")[2]
    descriptor = _open(top, path, os.O_PATH)
    try:
        seen = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if name.lower() == b".git":
        return TreeEntry("", seen.st_size, unfit="a repository of its own, or a pointer to one")
    if stat.S_ISDIR(seen.st_mode):
        return None
    if stat.S_ISLNK(seen.st_mode):
        return TreeEntry(LINK, seen.st_size)
    if stat.S_ISREG(seen.st_mode):
        return TreeEntry(PROGRAM if seen.st_mode & stat.S_IXUSR else FILE, seen.st_size)
    return TreeEntry("", seen.st_size, unfit="a pipe, a socket or a device")


def _same(top: int, path: bytes, entry: TreeEntry, base: Mapping[bytes, TreeEntry], algorithm: str) -> bool:
    known = base.get(path)
    if known is None or known.mode != entry.mode or known.size != entry.size:
        return False
    pieces: Iterable[bytes] = (
        [_target(top, path)] if entry.mode == LINK else _pieces(top, path, known.size + 1)
    )
    digest = hashlib.new(algorithm, b"blob %d\0" % known.size, usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest() == known.oid


def _open(top: int, path: bytes, flags: int) -> int:
    try:
        return open_beneath(top, path, flags)
    except OSError as error:
        raise refused("unreadable", path, f"cannot be read: {error.strerror}") from None


def _target(top: int, path: bytes) -> bytes:
    descriptor = _open(top, path, os.O_PATH)
    try:
        return os.readlink(b"", dir_fd=descriptor)
    except OSError as error:
        raise refused("unreadable", path, f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _pieces(top: int, path: bytes, most: int) -> Iterator[bytes]:
    descriptor = _open(top, path, _OPEN)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise refused("unreadable", path, "changes while it is read")
        while most > 0 and (piece := os.read(descriptor, min(most, _PIECE))):
            yield piece
            most -= len(piece)
    finally:
        os.close(descriptor)
