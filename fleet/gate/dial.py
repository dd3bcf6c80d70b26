"""The autonomy dial: one word in one file, read at every decision, never cached.

Any fault of the file means `observe`, with the reason.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from fleet.clock import Clock, iso
from fleet.errors import ConfigError
from fleet.gate.model import Rung

DIAL = "autonomy"
NOTE = "autonomy.json"
MAX_BYTES = 64
_TRIES = 5
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_WORDS = {word: rung for rung in Rung for word in (rung.encode(), rung.encode() + b"\n")}


@dataclass(frozen=True, slots=True)
class DialReading:
    """`trusted` is false when the file was rejected: then `rung` is observe and `why` the reason."""

    rung: Rung
    trusted: bool
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialNote:
    """Who turned the dial, when (ISO, UTC) and why; shown only while it agrees with the dial itself."""

    rung: str
    who: str
    when: str
    why: str


class _Distrust(Exception):
    """Why a file is rejected."""


class _FileReplaced(_Distrust):
    """The file was replaced between open and check: the new one decides."""


def read_dial(path: Path) -> DialReading:
    """One fresh reading; never raises, never blocks (a FIFO is opened non-blocking, then refused)."""
    try:
        raw = _read_own(path, MAX_BYTES)
        rung = _WORDS.get(raw)
        if rung is None:
            raise _Distrust("empty" if not raw.strip() else f"not one of {', '.join(Rung)}")
    except _Distrust as reason:
        return DialReading(Rung.OBSERVE, False, f"{path.name}: {reason}")
    return DialReading(rung, True)


def read_note(state: Path) -> DialNote | None:
    """Who set the dial, if the note is intact and agrees with the dial; else None."""
    dial = read_dial(state / DIAL)
    try:
        note = DialNote(**json.loads(_read_own(state / NOTE, 4096)))
    except (_Distrust, ValueError, TypeError, RecursionError):
        return None
    honest = (
        dial.trusted and note.rung == dial.rung and all(isinstance(v, str) for v in asdict(note).values())
    )
    return note if honest else None


def write_dial(state: Path, rung: Rung, reason: str, who: str, clock: Clock) -> DialNote:
    """Set the dial on a person's request: first the note, then the word, each replaced atomically.

    ConfigError when the state directory cannot be written. A crash in between leaves the old word
    with a note that disagrees and is not shown.
    """
    note = DialNote(rung=rung.value, who=who, when=iso(clock.now()), why=reason)
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(state / NOTE, json.dumps(asdict(note)).encode() + b"\n")
        write_whole(state / DIAL, rung.value.encode() + b"\n")
    except OSError as error:
        raise ConfigError(
            f"{state / DIAL}: cannot be written: {error.strerror}",
            remedy="make the state directory writable, and move away what blocks the file's path",
        ) from None
    return note


def write_whole(path: Path, data: bytes, *, named: bool = True) -> None:
    """Replace a file by another in one step, mode 0600, durable: readers see the old or the new. OSError.

    `named` False: after a loss of power the old one may be back.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if not named:
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _read_own(path: Path, limit: int) -> bytes:
    """The content of a small regular file that only this user or root can have written."""
    for _ in range(_TRIES - 1):
        try:
            return _read_once(path, limit)
        except _FileReplaced:
            continue
    return _read_once(path, limit)


def _read_once(path: Path, limit: int) -> bytes:
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        raise _Distrust(_OPEN_ERRORS.get(error.errno or 0, error.strerror or "unreadable")) from None
    except ValueError:  # a NUL in the path
        raise _Distrust("unreadable") from None
    try:
        _examine(os.fstat(descriptor), limit)
        raw = os.read(descriptor, limit + 1)  # one more byte, so that a file that grew is rejected
        _examine(os.fstat(descriptor), limit)
        _named(path, descriptor)
        return raw
    except OSError as error:
        raise _Distrust(error.strerror or "unreadable") from None
    finally:
        os.close(descriptor)


def _named(path: Path, descriptor: int) -> None:
    """Check that the name still means that file: a link elsewhere keeps a replaced file's count at one."""
    try:
        here = os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        here = False
    if not here:
        raise _FileReplaced("replaced repeatedly")


_OPEN_ERRORS = {
    errno.ENOENT: "missing",
    errno.ELOOP: "a symbolic link",
    errno.EACCES: "unreadable",
    errno.ENXIO: "not a regular file",
}


def _examine(found: os.stat_result, limit: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _Distrust("not a regular file")
    if found.st_uid not in (0, os.geteuid()):
        raise _Distrust(f"belongs to another user ({found.st_uid})")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _Distrust("writable by others")
    if found.st_nlink == 0:
        raise _FileReplaced("replaced repeatedly")
    if found.st_nlink != 1:
        raise _Distrust("has other names (hard links)")
    if found.st_size > limit:
        raise _Distrust(f"larger than {limit} bytes")
