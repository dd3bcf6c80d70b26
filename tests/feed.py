"""Reads a daemon's feed, `events.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fleet.events.chain import unlinked
from fleet.events.daemon_events import DaemonEvent

MAX_LINE = 1 << 20
_EVENTS: TypeAdapter[DaemonEvent] = TypeAdapter(DaemonEvent)


def read_feed(path: Path) -> Iterator[DaemonEvent]:
    """Every whole event of the file; torn, foreign and unknown lines are skipped."""
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        return
    with handle:
        for line in handle:
            try:
                if len(line) <= MAX_LINE:
                    yield _EVENTS.validate_json(unlinked(line.removesuffix(b"\n")))
            except ValidationError:
                continue
