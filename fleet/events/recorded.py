"""Reading a trajectory back: of any age, torn or not, in flat memory, never raising for its content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fleet.events.model import EVENTS, Event
from fleet.events.versions import renewed

MAX_LINE = 4 << 20
"""Bytes; a longer line is skipped and counted."""
RAW = 4_096
"""Characters kept of a line that is not JSON."""
_CANDIDATE = re.compile(rb'"type" ?: ?"(header|footer|run\.started|run\.ended)"')
_HEAD = 512
"""Bytes of a line within which its own `type` stands, in what this fleet writes."""


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A line that is no event known here.

    `raw_type` is its `type`, `null` without one, `non-object` for other JSON, `invalid` for no JSON.
    """

    raw_type: str
    raw: Any


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """One line without its end; `end` is the offset behind it. A torn one has no end; `long`: not kept."""

    text: bytes
    end: int
    torn: bool = False
    long: bool = False


def lines(path: Path, start: int = 0) -> Iterator[RecordedLine]:
    """The lines of a file from an offset on, at most MAX_LINE in memory; none when it is not there."""
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        return
    with handle:
        handle.seek(start)
        end = start
        while piece := handle.readline(MAX_LINE):
            end += len(piece)
            long, text = False, piece
            while not piece.endswith(b"\n") and (piece := handle.readline(MAX_LINE)):
                long, end, text = True, end + len(piece), b""
                text = piece[-1:]
            yield RecordedLine(b"" if long else text.removesuffix(b"\n"), end, not text.endswith(b"\n"), long)


class Recording:
    """A trajectory to iterate over, again and again; the flags say what the last pass met.

    Every whole record comes, known ones as events (older versions renewed), others as UnknownRecord. Blank
    lines are passed over.
    """

    def __init__(self, path: Path, *, start: int = 0) -> None:
        self._path, self._start = path, start
        self.torn = False
        """The last line has no end: its writer was killed, or is at work."""
        self.too_long = 0
        """Lines of more than MAX_LINE bytes, skipped."""
        self.unknown = 0
        self.offset = start
        """Behind the last whole line: where to read on."""

    def __iter__(self) -> Iterator[Event | UnknownRecord]:
        self.torn, self.too_long, self.unknown, self.offset = False, 0, 0, self._start
        for line in lines(self._path, self._start):
            if line.torn:
                self.torn = True
                return
            self.offset = line.end
            if line.long:
                self.too_long += 1
            elif line.text.strip():
                record = parse(line.text)
                self.unknown += isinstance(record, UnknownRecord)
                yield record


def parse(text: bytes) -> Event | UnknownRecord:
    """One line as an event of today, whatever version wrote it, or as what it is."""
    try:
        return EVENTS.validate_json(text)
    except ValidationError:
        pass
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return UnknownRecord("invalid", text[:RAW].decode("utf-8", "replace"))
    if not isinstance(raw, dict):
        return UnknownRecord("non-object", raw)
    try:
        return EVENTS.validate_python(renewed(raw))
    except (ValidationError, RecursionError):
        kind = raw.get("type")
        return UnknownRecord("null" if kind is None else str(kind)[:RAW], raw)


def kind_of(text: bytes) -> str:
    """`header` or `footer` for those two, of any version, else "": without parsing all the others."""
    if not _CANDIDATE.search(text, 0, _HEAD):
        return ""
    record = parse(text)
    return "" if isinstance(record, UnknownRecord) or record.type not in ("header", "footer") else record.type
