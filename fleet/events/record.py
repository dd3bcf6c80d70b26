"""What all events share: their base, the readers they are passed on to, and a file of chained lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from fleet.events.chain import Place, behind, known_head, linked, open_head, write_head
from fleet.files import sync_folder

EventType = Literal["request", "response", "decision", "state_transition", "error", "finding", ""]
"""What kind of event a line is, in the words of the APTS."""
_KINDS: Mapping[str, EventType] = {
    "decision.made": "decision",
    "fault.met": "error",
    "finding.raised": "finding",
    "finding.verified": "finding",
    "gate.denied": "response",
    "message.said": "response",
    "risk.assessed": "decision",
    "tool.requested": "request",
    "tool.responded": "response",
}
"""Of events that are more than a change of state."""
_SOURCES: Mapping[str, str] = {
    "boundary": "checks",
    "call": "jail",
    "check": "checks",
    "config": "configuration",
    "credential": "vault",
    "decision": "run",
    "dial": "gate",
    "driver": "run",
    "extension_disabled": "gate",
    "finding": "oracles",
    "fix": "fix",
    "footer": "run",
    "gate": "gate",
    "header": "run",
    "instruction": "oracles",
    "keys": "signer",
    "message": "driver",
    "outage": "checks",
    "pace": "broker",
    "persona": "configuration",
    "phase": "run",
    "probe": "run",
    "proposal": "fix",
    "question": "run",
    "resource": "settlement",
    "risk": "gate",
    "run": "run",
    "target": "checks",
    "tool": "jail",
    "trigger": "triggers",
    "turn": "desk",
}
"""The component that an event comes from, by the first word of its type; others come from the daemon."""


class EventRecord(BaseModel):
    """The base of every event: frozen, keyword-only, past tense, discriminated by `type`.

    The three fields are set where the time is: what links the events of one piece of work is its run with the
    turn, or the daemon's start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    event_type: EventType = ""
    source: str = ""
    correlation_id: str = ""


STAMP = frozenset({"run", "at", "source", "event_type", "correlation_id"})
"""The fields that are set where an event is written."""


def origin(kind: str) -> dict[str, str]:
    """Source and event type of an event with this `type`."""
    first = kind.partition(".")[0]
    return {"source": _SOURCES.get(first, "daemon"), "event_type": _KINDS.get(kind, "state_transition")}


E = TypeVar("E", bound=EventRecord)


class Readers(Generic[E]):
    """Functions that are called with every event immediately, in order: they must not block.

    One that raises is dropped: observability fails open.
    """

    def __init__(self, readers: Iterable[Callable[[E], None]]) -> None:
        self._readers = list(readers)

    def publish(self, event: E) -> None:
        for reader in list(self._readers):
            try:
                reader(event)
            except Exception:
                self._readers.remove(reader)


class RecordFile:
    """A file of chained lines that one process appends to. Raises OSError; `sync` False: durable later."""

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self._path, self._sync = path, sync
        self._fd = _open(path)
        try:
            self._beside = open_head(path)
        except OSError:
            os.close(self._fd)
            raise
        self.size = os.fstat(self._fd).st_size
        """Bytes on disk."""
        self._head = known_head(path, self.size)

    @property
    def end(self) -> Place:
        """The number of lines, and the head behind the last."""
        return self._head.end

    def append(self, lines: Iterable[bytes]) -> None:
        """Add objects of JSON, without line ends; when it raises, none of them is in the file."""
        place, text = self._head.end, b""
        for line in lines:
            chained = linked(place, line)
            place = behind(place, chained)
            text += chained + b"\n"
        self._add(text, place)

    def _add(self, text: bytes, place: Place) -> None:
        data = memoryview(text)
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            if self._sync:
                os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self.size)  # half a record must not precede the next
            raise
        self.size += len(text)
        self._head = self._head._replace(end=place, size=self.size)
        self._save()

    def _save(self) -> None:
        with suppress(OSError):  # what it does not have is read again at the next start
            write_head(self._beside, self._head)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._fd

    def sync(self) -> None:
        """Make what was appended durable."""
        os.fdatasync(self._fd)

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes: its whole lines."""
        os.ftruncate(self._fd, size)
        self.size = size

    def end_line(self) -> None:
        """End half a line, which a killed process may have left, so that the next one is whole."""
        if torn := os.pread(self._fd, self.size - self._head.size, self._head.size):
            self._add(b"\n", behind(self._head.end, torn))

    def sync_names(self) -> None:
        """Make the names of the file and of its folder durable: records are useless without them."""
        for folder in (self._path.parent, self._path.parent.parent):
            sync_folder(folder)

    def rotate(self) -> None:
        """Begin a new file; this one is put aside as `<name>.1.jsonl`, replacing the one there."""
        self._path.replace(self._path.with_suffix(".1.jsonl"))
        self._head = self._head.rotated()
        self._save()
        fresh = _open(self._path)
        os.close(self._fd)
        self._fd, self.size = fresh, 0

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._beside)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)
