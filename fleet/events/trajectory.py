"""A run's stream on disk: `trajectory.jsonl`, one event a line, durable line by line.

The first line is `run.started`, the last `run.ended`, each exactly once whatever happens between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from fleet.errors import FleetError
from fleet.events.model import EVENTS, Event, Footer, Header

MAX_LINE = 4 << 20
"""Bytes; a longer line is skipped by the reader."""


class TrajectoryFile:
    """The durable sink: fsync per record, and a torn last line is cut off before appending."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags, 0o600)
        self._started, self._ended = self._recover(path)

    def _recover(self, path: Path) -> tuple[bool, bool]:
        whole = 0
        with path.open("rb") as handle:
            for line in handle:
                if line.endswith(b"\n"):
                    whole += len(line)
        os.ftruncate(self._fd, whole)
        os.lseek(self._fd, 0, os.SEEK_END)
        events = list(read(path))
        return bool(events), any(isinstance(event, Footer) for event in events)

    @property
    def started(self) -> bool:
        """Whether the header is on disk."""
        return self._started

    @property
    def ended(self) -> bool:
        """Whether the footer is on disk."""
        return self._ended

    def write(self, event: Event) -> None:
        """Append one event; raises FleetError before the header, after the footer, or for a second header."""
        if self._ended:
            raise FleetError("the trajectory is closed: its footer is written")
        if isinstance(event, Header) == self._started:
            raise FleetError("the trajectory starts with exactly one header")
        data = memoryview(event.model_dump_json().encode() + b"\n")
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)
        self._started = True
        self._ended = isinstance(event, Footer)

    def close(self) -> None:
        os.close(self._fd)


def read(path: Path) -> Iterator[Event]:
    """Every whole event of a file, one at a time; torn, foreign and unknown lines are passed over."""
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        return
    with handle:
        for line in handle:
            if not line.endswith(b"\n") or len(line) > MAX_LINE:
                continue
            try:
                yield EVENTS.validate_json(line)
            except ValidationError:
                continue
