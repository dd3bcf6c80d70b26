"""The autonomy dial: one word in one file, read at every decision, never cached.

Any fault of the file means `observe`, with the reason.
"""

from __future__ import annotations

import errno
import json
import os
import pwd
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleet.clock import Clock, iso
from fleet.errors import ConfigError
from fleet.files import UnfitFile, read_owned, write_atomic
from fleet.gate.model import Rung

DIAL = "autonomy"
NOTE = "autonomy.json"
BY_HAND = "by hand"
MAX_BYTES = 64
MISSING = "missing"
_QUOTED = 60
_WORDS = {word: rung for rung in Rung for word in (rung.encode(), rung.encode() + b"\n")}


@dataclass(frozen=True, slots=True)
class DialReading:
    """`trusted` is false when the file was rejected: then `rung` is observe and `why` the reason."""

    rung: Rung
    trusted: bool
    why: str = ""

    @property
    def fault(self) -> str:
        """Why a file that is there was rejected, in printable ASCII but for its name; a missing one is no
        fault."""
        return "" if self.trusted or self.why.endswith(f": {MISSING}") else self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class DialNote:
    """Who turned the dial, when (ISO, UTC) and why; shown only while it agrees with the dial itself."""

    rung: str
    who: str
    when: str
    why: str


class _Distrust(Exception):
    """Why a file is rejected."""


def rung_word(path: Path) -> str:
    """The rung of one fresh reading, as a word."""
    return read_dial(path).rung.value


def read_dial(path: Path) -> DialReading:
    """One fresh reading; never raises, never blocks (a FIFO is opened non-blocking, then refused)."""
    try:
        raw = _read_own(path, MAX_BYTES)
        rung = _WORDS.get(raw)
        if rung is None:
            word = ascii(raw.removesuffix(b"\n").decode("utf-8", "replace"))[:_QUOTED]
            raise _Distrust("empty" if not raw.strip() else f"not one of {', '.join(Rung)}: {word}")
    except _Distrust as reason:
        return DialReading(Rung.OBSERVE, False, f"{path.name}: {reason}")
    return DialReading(rung, True)


def read_note(state: Path) -> DialNote | None:
    """Who set the dial by command, if the note is intact and agrees with the dial; else None.

    The file's time must be that of the note: a word written by hand inherits no reason, even if it is the
    same word.
    """
    dial = read_dial(state / DIAL)
    try:
        note = DialNote(**json.loads(_read_own(state / NOTE, 4096)))
    except (_Distrust, ValueError, TypeError, RecursionError):
        return None
    if not (dial.trusted and note.rung == dial.rung):
        return None
    if not all(isinstance(value, str) for value in asdict(note).values()):
        return None
    try:  # only `write_dial` leaves a file that was last changed at a whole second
        changed = os.lstat(state / DIAL).st_mtime_ns
    except OSError:
        return None
    seconds = _seconds(note.when)
    return note if seconds is not None and changed == seconds * 10**9 else None


def set_by(state: Path) -> DialNote | None:
    """Who set the dial, when and why: by the note, else by the file's owner and time, `by hand`.

    None without a file.
    """
    if (note := read_note(state)) is not None:
        return note
    try:
        found = os.lstat(state / DIAL)
    except (OSError, ValueError):
        return None
    reading = read_dial(state / DIAL)
    why = f"{BY_HAND}: {reading.why}" if reading.why else BY_HAND
    when = iso(datetime.fromtimestamp(found.st_mtime, UTC))
    try:
        who = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        who = str(found.st_uid)
    return DialNote(rung=reading.rung.value, who=who, when=when, why=why)


def write_dial(state: Path, rung: Rung, reason: str, who: str, clock: Clock) -> DialNote:
    """Set the dial on a person's request: first the note, then the word, each replaced atomically.

    ConfigError when the state directory cannot be written. A crash in between leaves the old word
    with a note that disagrees and is not shown.
    """
    now = iso(clock.now())
    note = DialNote(rung=rung.value, who=who, when=now, why=reason)
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(state / NOTE, json.dumps(asdict(note)).encode() + b"\n")
        write_atomic(state / DIAL, rung.value.encode() + b"\n", changed=_seconds(now))
    except OSError as error:
        raise ConfigError(
            f"{state / DIAL}: cannot be written: {error.strerror}",
            remedy="make the state directory writable, and move away what blocks the file's path",
        ) from None
    return note


def _seconds(when: str) -> int | None:
    """Unix seconds of an ISO time; None for anything else."""
    try:
        return int(datetime.fromisoformat(when).timestamp())
    except (ValueError, OverflowError):
        return None


_OPEN_ERRORS = {
    errno.ENOENT: MISSING,
    errno.ELOOP: "a symbolic link",
    errno.EACCES: "unreadable",
    errno.ENXIO: "not a regular file",
}


def _read_own(path: Path, limit: int) -> bytes:
    """The content of a small regular file that only this user or root can have written."""
    try:
        return read_owned(path, limit, mark="refuse")
    except UnfitFile as unfit:
        raise _Distrust(unfit.strerror) from None
    except OSError as error:
        raise _Distrust(_OPEN_ERRORS.get(error.errno or 0, error.strerror or "unreadable")) from None
    except ValueError:  # a NUL in the path
        raise _Distrust("unreadable") from None
