"""`DECISIONS.md`: decisions of runs, their reasons, and how to reverse them. Append-only.

Numbers continue after a restart and across processes: each record is written under a lock, after the last
number in the file, and ends with the hash of all lines before it (fleet/events/chain.py). A record that
cannot be written is lost, but the run goes on. A file that grows too large is moved to `DECISIONS.1.md`,
replacing the previous one, and the numbers continue.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Literal, NamedTuple

from fleet.clock import Clock, iso_ms
from fleet.events.chain import behind, known_head, open_head, write_head
from fleet.files import open_regular
from fleet.text import line

NAME, OLDER = "DECISIONS.md", "DECISIONS.1.md"
LARGEST = 16 << 20
"""Bytes; about twenty thousand records."""
PATIENCE_S = 0.2
"""Longest wait for the lock; it blocks the whole process, and another one may hold the lock for hours."""
PAUSE_S = 0.005
TAIL = 65_536
"""Bytes read to find the last number; a record has at most a few thousand."""
_NUMBER = re.compile(rb"^## D([0-9]{1,12}) - ", re.MULTILINE)
_LOG = logging.getLogger("fleet.decisions")

Class = Literal["reversible", "irreversible"]


class Decision(NamedTuple):
    """One fork and the decision taken."""

    title: str
    fork: str
    decision: str
    why: str
    reversal: str
    charter: str = "within the persona's grant, budget and dial"
    kind: Class = "reversible"


class DecisionFile:
    """The decision log of one state directory."""

    def __init__(
        self, state: Path, clock: Clock, *, largest: int = LARGEST, patience_s: float = PATIENCE_S
    ) -> None:
        self.path, self._older, self._clock = state / NAME, state / OLDER, clock
        self._largest, self._patience_s, self._held = largest, patience_s, False

    def record(self, one: Decision, *, run: str, turn: int) -> int:
        """Append one record, durably; its number, or 0 when it could not be written."""
        try:
            descriptor = self._locked()
            try:
                return self._append(descriptor, one, run, turn)
            finally:
                os.close(descriptor)
        except OSError as error:
            _LOG.warning("cannot write %s: %s: %s", self.path, error.strerror, line(one.title, 160))
            return 0

    def _locked(self) -> int:
        """The locked file, with room for a record; OSError when another process holds the lock."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        end = time.monotonic() + (0.0 if self._held else self._patience_s)
        self._held = True  # until this returns: do not wait again for a held lock
        while True:
            descriptor = os.open(self.path, flags, 0o600)
            try:
                _lock(descriptor, end)
                if self._is_current(descriptor):
                    self._held = False
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _is_current(self, descriptor: int) -> bool:
        """Whether the next record belongs in this file; rotates one that is too large."""
        found = os.fstat(descriptor)
        with suppress(FileNotFoundError):
            if os.path.samestat(found, self.path.lstat()):
                if found.st_size <= self._largest:
                    return True
                self.path.replace(self._older)
        return False

    def _append(self, descriptor: int, one: Decision, run: str, turn: int) -> int:
        size = os.fstat(descriptor).st_size
        number, mend = _last(descriptor, size) if size else (self._before(), "")
        text = mend + _block(number + 1, one, run, turn, iso_ms(self._clock.now()))
        head = known_head(self.path, size)
        beside = open_head(self.path)
        try:
            if not size:
                write_head(beside, head)  # of a new file, before it has a line
            torn = os.pread(descriptor, size - head.size, head.size)
            *lines, _ = (torn + text.encode("utf-8", "replace")).split(b"\n")
            place = reduce(behind, lines, head.end)
            lines += [f"{'Prev:':<10}{place.head}".encode(), b""]
            data = b"\n".join([*lines, b""])[len(torn) :]
            if os.write(descriptor, data) != len(data):
                raise OSError(28, "only partly written")
            os.fsync(descriptor)
            write_head(beside, head._replace(end=reduce(behind, lines[-2:], place), size=size + len(data)))
        except OSError:
            os.ftruncate(descriptor, size)  # half a record is useless
            raise
        finally:
            os.close(beside)
        return number + 1

    def _before(self) -> int:
        """The last number of the rotated file; 0 without one."""
        try:
            descriptor = open_regular(self._older)
        except FileNotFoundError:
            return 0
        try:
            return _last(descriptor, os.fstat(descriptor).st_size)[0]
        finally:
            os.close(descriptor)


def _lock(descriptor: int, end: float) -> None:
    """Take the lock until `end` on the monotonic clock; OSError when another process holds it."""
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise OSError(error.errno, "another process holds its lock") from None
            time.sleep(PAUSE_S)


def _last(descriptor: int, size: int) -> tuple[int, str]:
    """The last number in the file, and the text that repairs its end after a torn record."""
    for reach in (TAIL, size):
        start = max(0, size - reach)
        tail = os.pread(descriptor, size - start, start)
        numbers = _NUMBER.findall(tail)
        if numbers or start == 0:
            break
    mend = "" if not tail or tail.endswith(b"\n\n") else "\n(torn)\n\n"
    return int(numbers[-1]) if numbers else 0, mend


def _block(number: int, one: Decision, run: str, turn: int, at: str) -> str:
    fields = {
        "Fork": one.fork,
        "Class": one.kind,
        "Charter": one.charter,
        "Decision": one.decision,
        "Why": one.why,
        "Reversal": one.reversal,
        "Run": run,
    }
    rows = [f"{name + ':':<10}{line(text, 600)}" for name, text in fields.items()]
    return "\n".join([f"## D{number} - {line(one.title, 160)} (turn {turn}, {at})", *rows, ""])
