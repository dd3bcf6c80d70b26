"""The chain of a file of lines: each says its number and the hash of all lines before it, and the last hash
stands beside.

The head after a line is SHA-256 of the head before it, a newline, and the line's bytes without its end; at
the beginning it is 64 zeros. So a line that is changed, dropped, added or moved no longer fits the `prev` of
the next one, whatever it was: half a line of a killed process, or one of an older version that did not chain.
What is hashed is the bytes as they lie there, which are never written anew: they need no canonical form.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from fleet.files import read_bounded

GENESIS = "0" * 64
LINK = len(',"seq":,"prev":""') + 12 + len(GENESIS)
"""Most bytes that the chain adds to a line of JSON."""
_PIECE, _TAIL = 1 << 20, 128
_ROOM = 512
"""Bytes of the file of a head: written in one piece within one page."""
_CLAIM = re.compile(rb'(?:(?:,"seq":([0-9]{1,12}))?,"prev":"([0-9a-f]{64})"\}|^Prev: +([0-9a-f]{64}))\Z')
_ENTRY = re.compile(rb"## D([0-9]{1,12}) - ")


class Place(NamedTuple):
    """How many lines stand before a place, in all files of a record, and the head there."""

    lines: int = 0
    head: str = GENESIS


class ChainHead(NamedTuple):
    """Where a file begins and ends, and its bytes there; `older` is where the file begins that it follows."""

    start: Place = Place()
    end: Place = Place()
    size: int = 0
    older: Place | None = None

    def rotated(self) -> ChainHead:
        """The head of an empty file that follows this one."""
        return ChainHead(start=self.end, end=self.end, older=self.start)


class ChainVerdict(NamedTuple):
    """What a record's chain says: `fault` is "" while it holds, `note` what a killed process left.

    `lines` are those that the present file holds, `chained` those of them that say their `prev`.
    """

    lines: int
    chained: int
    fault: str = ""
    note: str = ""
    end: Place = Place()


def behind(place: Place, line: bytes) -> Place:
    """The place behind a line, given without its end."""
    return Place(place.lines + 1, hashlib.sha256(place.head.encode() + b"\n" + line).hexdigest())


def linked(place: Place, line: bytes) -> bytes:
    """A line of JSON, an object with at least one member, with number (from 1) and `prev` of its place."""
    return b'%s,"seq":%d,"prev":"%s"}' % (line[:-1], place.lines + 1, place.head.encode())


def unlinked(line: bytes) -> bytes:
    """A line as it was before it was linked."""
    found = _CLAIM.search(line, max(0, len(line) - _TAIL))
    return line[: found.start()] + b"}" if found and found[2] else line


def head_path(path: Path) -> Path:
    """Where the head of a file stands."""
    return path.with_suffix(".head")


def read_head(path: Path) -> ChainHead | None:
    """The head that stands beside a file; None without a readable one."""
    try:
        found = json.loads(read_bounded(head_path(path), _ROOM))
        start, end, older = found["start"], found["end"], found["older"]
        places = [Place(int(lines), str(head)) for lines, head in (start, end, *([older] if older else ()))]
        return ChainHead(places[0], places[1], int(found["size"]), places[2] if older else None)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def write_head(descriptor: int, head: ChainHead) -> None:
    """Replace the head in its file, not waiting for the disk: what it lacks is read again at the start."""
    text = json.dumps(head._asdict(), separators=(",", ":")).encode()
    os.pwrite(descriptor, text.ljust(_ROOM - 1) + b"\n", 0)


def open_head(path: Path) -> int:
    """The descriptor of a file's head, for its only writer."""
    return os.open(head_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def known_head(path: Path, size: int) -> ChainHead:
    """The head of a file of this size, up to its last whole line: read from beside it, and what is behind.

    An empty file follows the one that was moved away.
    """
    head = read_head(path) or ChainHead()
    if not size and head.size:
        return head.rotated()
    if size < head.size:  # cut off: what follows says the hash of what was there, so that it stays visible
        return head._replace(size=size)
    with path.open("rb") as handle:
        handle.seek(head.size)
        for line in _walk(handle, head.end):
            if line.torn:
                break
            head = head._replace(end=line.end, size=handle.tell())
    return head


class _ChainLine(NamedTuple):
    """`seq` is the number that a line of JSON says, `entry` that of the decision that begins there, or -1."""

    end: Place
    claim: str
    torn: bool
    seq: int
    entry: int


def _walk(handle: IO[bytes], place: Place) -> Iterator[_ChainLine]:
    """The lines from here on, in constant memory; the last one is torn if it has no end."""
    while piece := handle.readline(_PIECE):
        digest, tail = hashlib.sha256(place.head.encode() + b"\n"), b""
        begins = _ENTRY.match(piece)
        while piece and not piece.endswith(b"\n"):
            digest.update(piece)
            tail, piece = (tail + piece)[-_TAIL:], handle.readline(_PIECE)
        digest.update(piece[:-1])
        found = _CLAIM.search((tail + piece[:-1])[-_TAIL:])
        place = Place(place.lines + 1, digest.hexdigest())
        claim, seq = ((found[2] or found[3]).decode(), int(found[1] or -1)) if found else ("", -1)
        yield _ChainLine(place, claim, torn=not piece, seq=seq, entry=int(begins[1]) if begins else -1)


def verify(path: Path, *, rotated: Path | None = None, sealed: Place | None = None) -> ChainVerdict:
    """Whether every line is as it was written, and none is missing.

    `rotated` is the file before this one, which may be gone; `sealed` the end that was recorded elsewhere.
    OSError when the file cannot be read.
    """
    head = read_head(path)  # before the lines: a writer adds them first
    found = _followed(path, head, rotated, sealed)
    now = read_head(path) if found.fault and head else head
    if now and head and now.start != head.start:  # it was put aside meanwhile
        return verify(path, rotated=rotated, sealed=sealed)
    return found


def _followed(path: Path, head: ChainHead | None, rotated: Path | None, sealed: Place | None) -> ChainVerdict:
    place, before = head.start if head else Place(), ChainVerdict(0, 0)
    if head and head.older and rotated is not None and rotated.exists():
        before = _verified(rotated, head.older, head.start)
        if before.fault:
            return before._replace(fault=f"{rotated.name}: {before.fault}")
        if before.end != head.start:
            return before._replace(fault=f"{rotated.name}: lines are missing at its end")
    found = _verified(path, place, head.end if head else None)
    if found.fault:
        return found
    if head is None and found.chained and sealed is None:
        return found._replace(fault=f"{head_path(path).name} is missing: nothing vouches for the last lines")
    missing = max(head.end.lines if head else 0, sealed.lines if sealed else 0) - found.end.lines
    if missing > 0:
        return found._replace(fault=f"lines are missing at its end: {missing}")
    if sealed is not None and sealed != found.end:
        return found._replace(fault="its end is not the one that was recorded when the run ended")
    return found


def _verified(path: Path, place: Place, end: Place | None) -> ChainVerdict:
    """The lines of one file from its beginning on, which must pass through `end` if they reach it."""
    first, chained, note, entry = place.lines, 0, "", -1
    with path.open("rb") as handle:
        for line in _walk(handle, place):
            number = line.end.lines - first
            if line.torn:
                note = f"line {number} is torn: its writer was killed, or is still writing"
                break
            chained += bool(line.claim)
            if line.claim and line.claim != place.head:
                why = f"line {number} does not follow what stands before it: changed, missing or moved lines"
                return ChainVerdict(number, chained, why, note, place)
            if line.seq not in (-1, line.end.lines) or (0 < entry != line.entry - 1 >= 0):
                why = f"line {number} has another number than its place: lines are missing or added before it"
                return ChainVerdict(number, chained, why, note, place)
            place, entry = line.end, max(entry, line.entry)
            if end is not None and place.lines == end.lines and place != end:
                return ChainVerdict(
                    number, chained, f"line {number}, once the last, was changed", note, place
                )
    lines = place.lines - first
    if end is not None and place.lines > end.lines and not note:
        note = "lines stand behind the head: its writer was killed just then, or is still writing"
    return ChainVerdict(lines, chained, "", note, place)
