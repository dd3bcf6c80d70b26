"""A run's stream on disk: `trajectory.jsonl`, one record a line, durable line by line.

The first line is the header, the last the footer, each exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fleet.errors import FleetError, TryAgain
from fleet.events.chain import LINK, Place
from fleet.events.model import (
    Event,
    Footer,
    GateDenied,
    Header,
    MessageSaid,
    ToolRequested,
    TurnStarted,
)
from fleet.events.record import RecordFile
from fleet.events.recorded import Recording, UnknownRecord, kind_of, lines
from fleet.events.truncate import fit
from fleet.files import FULL, disk_refused

MAX_FILE = 50_000_000
"""Most bytes of one file (harness-facts 2.2), for a run of half an hour."""
SHARES = 1024
"""Largest share of the remaining space for one record, so that later records have room."""
LARGEST, SMALLEST = 65_536, 1_024
RESERVE, FOOTER = 1 << 20, 16_384
"""Bytes reserved for a run's last steps, and among those for the footer."""
_BEGINNINGS = (ToolRequested, GateDenied, MessageSaid, TurnStarted)
"""Records that begin something: refused when only the reserve is left."""


class TrajectoryFile:
    """The durable sink: fsync per record, or per group of records that belong together; a torn last line is
    cut off before anything is appended.

    A record beyond its share is cut, with marks (`fleet.events.truncate`). Raises FleetError for a file
    that is not writable: no header yet, a second one, closed, or full; TryAgain when the disk refuses: then
    nothing of the record is in the file and it may be written again. `sync` False is for benchmarks.
    """

    def __init__(self, path: Path, *, sync: bool = True, largest: int = MAX_FILE) -> None:
        self._path, self._largest = path, largest
        with self._disk():
            self._file = RecordFile(path, sync=sync)
        whole = 0
        self.started = self.ended = False
        """Whether header and footer are on disk."""
        for line in lines(path):
            if line.torn:
                break
            whole = line.end
            kind = kind_of(line.text)
            self.started |= kind == "header"
            self.ended |= kind == "footer"
        self._file.truncate(whole)
        if sync and not whole:
            try:
                with self._disk():
                    self._file.sync_names()
            except TryAgain:
                self.close()
                raise

    @property
    def size(self) -> int:
        """Bytes on disk, as counted here."""
        return self._file.size

    @property
    def end(self) -> Place:
        """The number of its records, and the head of their chain."""
        return self._file.end

    def write(self, event: Event) -> None:
        """Append one record; it is on disk when this returns."""
        self.write_all((event,))

    def write_all(self, events: Iterable[Event]) -> None:
        """Append several records at once, all or none; they are on disk when this returns."""
        started, ended, lines, size = self.started, self.ended, list[bytes](), 0
        for event in events:
            if ended:
                raise FleetError("the trajectory is closed: its footer is written")
            if isinstance(event, Header) == started:
                raise FleetError("the trajectory starts with exactly one header")
            lines.append(fit(event, self._share(event, size) - LINK))
            size += len(lines[-1]) + LINK + 1
            started, ended = True, isinstance(event, Footer)
        with self._disk():
            self._file.append(lines)
        self.started, self.ended = started, ended

    def _share(self, event: Event, before: int) -> int:
        left = self._largest - self._file.size - before
        if isinstance(event, Footer):
            return FOOTER - 1
        if left - RESERVE <= LARGEST and isinstance(event, _BEGINNINGS):
            raise FleetError(f"{self._path.name} is full: {self._file.size} of {self._largest} bytes")
        if left <= FOOTER + SMALLEST:
            raise FleetError(f"{self._path.name} is full: only its footer fits")
        return max(SMALLEST, min(LARGEST, (left - RESERVE) // SHARES))

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """TryAgain when the disk refuses."""
        try:
            yield
        except OSError as error:
            if error.errno in FULL:
                raise disk_refused(self._path, error) from None
            raise TryAgain(f"{self._path}: {error.strerror}", remedy="check the disk") from None

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> Iterator[Event]:
    """Every whole event of a file, one at a time; torn, foreign and unknown lines are skipped."""
    return (record for record in Recording(path) if not isinstance(record, UnknownRecord))
