"""The autonomy dial: one word in one file, read at every decision, never cached.

Any fault of the file means `observe`, with the reason. A second line gives the word a term:

    exercise
    until 2026-11-28T02:00:00Z 1f0c9a2b:183042

The term is over at that time, or when this machine has been up for that many seconds (a clock that cannot be
set back), whichever is first; and once the machine started again, which changes its boot id, of which the
first part stands there. Then the dial reads `observe`.
"""

from __future__ import annotations

import errno
import json
import os
import pwd
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fleet.clock import Clock, iso
from fleet.errors import ConfigError
from fleet.files import UnfitFile, read_owned, write_atomic
from fleet.gate.model import Rung
from fleet.text import clean

DIAL = "autonomy"
NOTE = "autonomy.json"
BY_HAND = "by hand"
MAX_BYTES = 64
MISSING = "missing"
NEVER_SET = "never set, the default"
_QUOTED = 60
_CONTENT = re.compile(
    rf"({'|'.join(Rung)})(?:\nuntil ([0-9-]{{10}}T[0-9:]{{8}}Z) ([0-9a-f]{{8}}):([0-9]{{1,10}}))?\n?".encode()
)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, by the clock that can be set and by the one that cannot: seconds since boot `boot`."""

    wall: datetime
    boot: str
    up_s: float


def this_moment() -> Moment:
    """Now; no boot where the system has no such clock, which ends every term."""
    try:
        boot, up_s = _BOOT_ID.read_text()[:8], time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        boot, up_s = "", 0.0
    return Moment(datetime.now(UTC), boot, up_s)


@dataclass(frozen=True, slots=True)
class DialReading:
    """`trusted` is false when the file was rejected: then `rung` is observe and `why` the reason.

    `until` (ISO, UTC) is the end of a term. When it is over, `rung` is observe, `why` the reason, and
    `written` the word in the file.
    """

    rung: Rung
    trusted: bool
    why: str = ""
    until: str = ""
    written: str = field(default="", compare=False)

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


def read_dial(path: Path, moment: Callable[[], Moment] = this_moment) -> DialReading:
    """One fresh reading; never raises, never blocks (a FIFO is opened non-blocking, then refused)."""
    try:
        raw = _read_own(path, MAX_BYTES)
        found = _CONTENT.fullmatch(raw)
        if found is None:
            word = ascii(raw.removesuffix(b"\n").decode("utf-8", "replace"))[:_QUOTED]
            raise _Distrust("empty" if not raw.strip() else f"not one of {', '.join(Rung)}: {word}")
        rung, until, boot, up_s = (part.decode() if part else "" for part in found.groups())
        why = _over(until, boot, up_s, moment()) if until else ""
    except _Distrust as reason:
        return DialReading(Rung.OBSERVE, False, f"{path.name}: {reason}")
    if why:
        return DialReading(Rung.OBSERVE, True, f"the term of {rung} is over: {why}", until, rung)
    return DialReading(Rung(rung), True, "", until, rung)


def _over(until: str, boot: str, up_s: str, now: Moment) -> str:
    """Why a term is over; "" while it is not."""
    try:
        ended = now.wall >= datetime.fromisoformat(until)
    except ValueError:
        raise _Distrust(f"not a time: {until}") from None
    if ended:
        return f"it ended at {until}"
    if boot != now.boot:
        return "this machine started again since"
    return "" if now.up_s < int(up_s) else "its length has passed, and the clock was set back"


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
    if not (dial.trusted and note.rung == dial.written):
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
    reading = read_dial(state / DIAL)
    if (note := read_note(state)) is not None:
        return replace(note, rung=reading.rung.value, why=reading.why or note.why)
    try:
        found = os.lstat(state / DIAL)
    except (OSError, ValueError):
        return None
    why = f"{BY_HAND}: {reading.why}" if reading.why else BY_HAND
    when = iso(datetime.fromtimestamp(found.st_mtime, UTC))
    try:
        who = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        who = str(found.st_uid)
    return DialNote(rung=reading.rung.value, who=who, when=when, why=why)


def shown(state: Path) -> dict[str, Any]:
    """The dial as everything else reads it: `rung, until, trusted, fault, who, when, why`; `until` is the end
    of a term that is not over."""
    reading, note = read_dial(state / DIAL), set_by(state)
    why = NEVER_SET if reading.why == f"{DIAL}: {MISSING}" else clean(reading.why)
    if note:
        why = clean(note.why)
    return {
        "rung": str(reading.rung),
        "until": "" if reading.why else reading.until,
        "trusted": reading.trusted,
        "fault": clean(reading.fault),
        "who": clean(note.who) if note else "",
        "when": clean(note.when) if note else "",
        "why": why,
    }


def write_dial(state: Path, rung: Rung, reason: str, who: str, clock: Clock, term_s: float = 0.0) -> DialNote:
    """Set the dial on a person's request, for a term if one is given: first the note, then the word, each
    replaced atomically.

    ConfigError when the state directory cannot be written. A crash in between leaves the old word
    with a note that disagrees and is not shown.
    """
    now = iso(clock.now())
    note = DialNote(rung=rung.value, who=who, when=now, why=reason)
    word = f"{rung}\n{_term_line(clock, term_s)}" if term_s else f"{rung}\n"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(state / NOTE, json.dumps(asdict(note)).encode() + b"\n")
        write_atomic(state / DIAL, word.encode(), changed=_seconds(now))
    except OSError as error:
        raise ConfigError(
            f"{state / DIAL}: cannot be written: {error.strerror}",
            remedy="make the state directory writable, and move away what blocks the file's path",
        ) from None
    return note


def _term_line(clock: Clock, term_s: float) -> str:
    here = this_moment()
    if not here.boot:
        raise ConfigError(f"{_BOOT_ID}: cannot be read, so a term has no clock that cannot be set back")
    until = iso(clock.now() + timedelta(seconds=term_s))
    return f"until {until} {here.boot}:{int(here.up_s + term_s)}\n"


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
