"""Reading a trajectory back: any version, torn or not, in constant memory, never raising for its content."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import anyio
from anyio import to_thread
from pydantic import BaseModel, ValidationError

from fleet.events.chain import unlinked
from fleet.events.model import EVENTS, Event, Footer, Header

MAX_LINE = 4 << 20
"""Bytes; a longer line is skipped and counted."""
BATCH = 100
"""Records that are read in one go."""
LOOK_S = 0.2
"""Seconds between two looks at a file that does not grow."""
RAW = 4_096
"""Characters kept of a line that is not JSON."""
_CANDIDATE = re.compile(rb'"type" ?: ?"(header|footer|run\.started|run\.ended)"')
_HEAD = 512
"""First bytes of a line, which contain its `type` in files of this fleet."""


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A line that is not a known event.

    `raw_type` is its `type`, `null` without one, `non-object` for other JSON, `invalid` for non-JSON.
    """

    raw_type: str
    raw: Any


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """One line without its end; `end` is the offset after it. A torn one has no end; `long`: not kept."""

    text: bytes
    end: int
    torn: bool = False
    long: bool = False


def lines(path: Path, start: int = 0) -> Iterator[RecordedLine]:
    """The lines of a file from an offset on, at most MAX_LINE in memory; none if it is missing."""
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
    """A trajectory that can be iterated repeatedly, or followed; the flags describe what was read so far.

    Yields every whole record, known ones as events (older versions converted), others as UnknownRecord. Blank
    lines are skipped. Iterating begins at `start` each time; `new` and `follow` continue behind `offset`.
    With `end` nothing is read that begins at that offset or behind it.
    """

    def __init__(self, path: Path, *, start: int = 0, end: int | None = None) -> None:
        self._path, self._start, self._end = path, start, end
        self.torn = False
        """The last line is incomplete: its writer was killed, or is still writing."""
        self.too_long = 0
        """Lines of more than MAX_LINE bytes, skipped."""
        self.unknown = 0
        self.offset = start
        """Offset after the last whole line, where reading continues."""

    def __iter__(self) -> Iterator[Event | UnknownRecord]:
        self.torn, self.too_long, self.unknown, self.offset = False, 0, 0, self._start
        return self._rest()

    def new(self, most: int | None = None) -> list[Event | UnknownRecord]:
        """Records written since the last call, at most `most` of them."""
        return list(islice(self._rest(), most))

    async def follow(
        self, still: anyio.Event, *, pause_s: float = LOOK_S
    ) -> AsyncGenerator[Event | UnknownRecord, None]:
        """Records as they are written: until a footer is the last, or `still` is set and nothing more comes.

        The file may not be there yet. It is read by a thread, so the loop never waits for the disk.
        """
        closed = False
        while True:
            over = still.is_set()
            found = await to_thread.run_sync(self.new, BATCH)
            for record in found:
                yield record
                closed = isinstance(record, Footer)
            if (closed and len(found) < BATCH) or (over and not found):
                return
            if not found:
                with anyio.move_on_after(pause_s):
                    await still.wait()

    def _rest(self) -> Iterator[Event | UnknownRecord]:
        self.torn = False
        if self._end is not None and self.offset >= self._end:
            return
        for line in lines(self._path, self.offset):
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
            if self._end is not None and self.offset >= self._end:
                return


def parse(text: bytes) -> Event | UnknownRecord:
    """One line as a current event, converted from any version, or as UnknownRecord; `prev` is the file's."""
    text = unlinked(text)
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
    """`header` or `footer` for those two, of any version, else "": without parsing the others."""
    if not _CANDIDATE.search(text, 0, _HEAD):
        return ""
    record = parse(text)
    return "" if isinstance(record, UnknownRecord) or record.type not in ("header", "footer") else record.type


_MODELS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {model.model_fields["type"].default: model for model in get_args(get_args(Event)[0])}
)
_RENAMED = {"run.started": "header", "run.ended": "footer"}
_EMPTY: Mapping[str, Callable[[], Any]] = {"str": str, "int": int, "dict": dict}
_HEADER = {
    "agents_md_hash": "persona_sha256",
    "build_identifier": "build",
    "model_identifier": "model",
    "harness_version": "driver",
    "config": "policy",
}


def renewed(raw: dict[str, Any]) -> dict[str, Any]:
    """A record of an older writer, or of leonard's format (harness-facts 2.1), under its current name.

    Removed fields are dropped, missing header fields are empty; an unknown type is returned unchanged.
    """
    kind = _RENAMED.get(str(raw.get("type")), str(raw.get("type")))
    model = _MODELS.get(kind)
    if model is None:
        return raw
    new = _CHANGES.get(kind, dict)(raw) | {"type": kind}
    return {key: value for key, value in new.items() if key in model.model_fields}


def _header(raw: dict[str, Any]) -> dict[str, Any]:
    new = {"schema_version": 1, **{_HEADER.get(key, key): value for key, value in raw.items()}}
    for name, field in Header.model_fields.items():
        if field.is_required() and new.get(name) is None:
            annotation = field.annotation
            new[name] = _EMPTY[getattr(annotation, "__name__", "str")]()
    return new


def _turn(raw: dict[str, Any]) -> dict[str, Any]:
    """Leonard's turn contains its actions; here they have their own records."""
    new = {key: value for key, value in raw.items() if value is not None}
    for key in ("proposed", "executed"):
        if isinstance(new.get(key), dict):
            del new[key]
    if raw.get("executed_action") or raw.get("proposed_action"):
        seen = raw.get("observation") if isinstance(raw.get("observation"), dict) else {}
        acted = {key: raw[key] for key in ("proposed_action", "executed_action") if key in raw}
        new["observation"] = {**(seen or {}), **acted}
    return new


def _footer(raw: dict[str, Any]) -> dict[str, Any]:
    new = {key: value for key, value in raw.items() if value is not None}
    new.setdefault("outcome", "harness_error")
    why = ", ".join(str(raw[key]) for key in ("harness_error", "termination_detail") if raw.get(key))
    if why:
        new.setdefault("detail", why)
    if "total_turns" in new:
        new.setdefault("turns", new["total_turns"])
    if isinstance(took := new.get("total_duration_ms"), int | float):
        new.setdefault("seconds", took / 1000)
    return new


_CHANGES: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    Header.model_fields["type"].default: _header,
    Footer.model_fields["type"].default: _footer,
    "turn": _turn,
}
