"""ALLOW_GIT: a person's permission to push for one item, or on one day (UTC).

A token is a file `allow-git/<fingerprint>` or `allow-git/day-YYYY-MM-DD` beside `fleet.toml`, not in the
state directory: nothing of the fleet writes there, and under systemd nothing can. Its content is the word
`allow`.
Folder and file must belong to this user or root, and no other may write them. It is read at every decision,
never cached and never written; any fault of it means no, with the reason.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleet.config.files import config_dirs
from fleet.files import UnfitFile, read_owned

FOLDER = "allow-git"
WORD = "allow"
MAX_BYTES = 64
_WORDS = (WORD.encode(), WORD.encode() + b"\n")
_FINGERPRINT = re.compile(r"[0-9a-f]{12,64}", re.ASCII)
_MISSING = "missing"
_ERRORS = {
    errno.ENOENT: _MISSING,
    errno.ELOOP: "a symbolic link",
    errno.ENOTDIR: "not a folder",
    errno.EACCES: "unreadable",
    errno.ENXIO: "not a regular file",
}


@dataclass(frozen=True, slots=True)
class GitPermission:
    """`why` says what permits ("item 0123456789ab", "day 2026-11-23"), or why nothing does."""

    allowed: bool
    why: str


def allow_folder() -> Path:
    """Where a person puts tokens: beside the first `fleet.toml` that is searched for."""
    return config_dirs()[0] / FOLDER


def permission(folder: Path, item: str, now: datetime) -> GitPermission:
    """One fresh reading, the item's own token first; never raises, never waits for a pipe's writer."""
    if not _FINGERPRINT.fullmatch(item):
        return GitPermission(False, "no token can name this item")
    if why := _unfit(folder):
        return GitPermission(False, f"{FOLDER}: {why}")
    day = f"day-{now.astimezone(UTC):%Y-%m-%d}"
    for name, words in ((item, f"item {item}"), (day, day.replace("-", " ", 1))):
        why = _fault(folder / name)
        if why != _MISSING:
            return GitPermission(not why, f"{FOLDER}/{name}: {why}" if why else words)
    return GitPermission(False, f"{FOLDER}: no token for item {item} or for {day.removeprefix('day-')}")


def command(folder: Path, item: str) -> str:
    """What a person types to permit pushing for this item."""
    place = shlex.quote(str(folder))
    token = shlex.quote(str(folder / item))
    return f"mkdir -p -m 0755 {place} && (umask 022 && echo {WORD} > {token})"


def _unfit(folder: Path) -> str:
    """Why the folder cannot be trusted; "" if it can."""
    try:
        found = os.lstat(folder)
    except (OSError, ValueError) as error:
        return _ERRORS.get(getattr(error, "errno", 0) or 0, "unreadable")
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    if not stat.S_ISDIR(found.st_mode):
        return "not a folder"
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to another user ({found.st_uid})"
    return "writable by others" if found.st_mode & 0o022 else ""


def _fault(path: Path) -> str:
    """Why the token does not count; "" if it does."""
    try:
        raw = read_owned(path, MAX_BYTES, mark="refuse")
    except UnfitFile as unfit:
        return unfit.strerror
    except (OSError, ValueError) as error:
        return _ERRORS.get(getattr(error, "errno", 0) or 0, "unreadable")
    return "" if raw in _WORDS else f"its content is not the word {WORD}"
