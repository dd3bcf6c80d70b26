"""Remains on this machine of runs that a peer settled while it was presumed dead."""

from __future__ import annotations

import os
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from fleet.chain.run_keys import RunKeys
from fleet.clock import Clock
from fleet.errors import UsageError
from fleet.events.model import Footer
from fleet.events.recorded import kind_of
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile
from fleet.store.journal import Journal
from fleet.store.rows import RunRow

TAIL = 65_536
"""Bytes; a footer is the last record and shorter than this."""


async def close_orphans(
    state: Path, journal: Journal, clock: Clock, *, busy: Container[str] = ()
) -> list[str]:
    """Destroy the keys and write the footers of such runs; the ids of runs that have no end yet.

    Runs that have not ended in the journal, and runs of another journal, are left alone. `busy` are runs
    that this process still works on: they stop on their own.
    """
    waiting = []
    for folder in sorted(state.glob("runs/*")):
        whole = not (folder / "keys").is_dir() and _has_end(folder / "trajectory.jsonl")
        if whole:
            continue
        with suppress(UsageError):
            row = await journal.run(folder.name)
            owes = row.state != "ended" or await journal.effects(row.run_id, ["key"], ["open"])
            if owes or row.run_id in busy:
                waiting.append(row.run_id)
                continue
            RunKeys(folder).destroy()
            _end(folder / "trajectory.jsonl", row, clock)
    return waiting


def _has_end(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - TAIL))
            *_, last = handle.read(TAIL).rpartition(b"\n")[0].rpartition(b"\n")
            return kind_of(last) == "footer"
    except FileNotFoundError:
        return True


def _end(path: Path, row: RunRow, clock: Clock) -> None:
    sink = TrajectoryFile(path)
    try:
        if sink.started and not sink.ended:
            detail = f"settled by another daemon: {row.detail}"
            Stream(row.run_id, clock=clock, sink=sink).emit(Footer(outcome=row.outcome, detail=detail))
    finally:
        sink.close()
