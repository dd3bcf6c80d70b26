"""Keys without a run: the journal was lost, or an older copy was restored.

Their holdings are returned in the normal way: the run is written into the journal again, with a key and a
name for each file, and settled like one whose process was killed. Only the chain shows what the keys hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from fleet.chain.run_keys import RunKeys
from fleet.clock import Clock
from fleet.errors import UsageError
from fleet.events.model import Footer, GateDenied, Header, ToolRequested
from fleet.events.recorded import kind_of
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile, read
from fleet.runs.context import FleetContext
from fleet.runs.settlement.settle import waits_key
from fleet.store.journal import Journal
from fleet.store.rows import NewRun, RunRow

_RUN = re.compile(r"[a-z2-7]{8}")
_MARK = "@lost:"
TAIL = 65_536
"""Bytes; a footer is the last record and shorter than this."""


async def keys_without_runs(state: Path, journal: Journal) -> list[str]:
    """Runs whose keys are here and which the journal does not know, or knows only from here."""
    found = []
    for folder in sorted(state.glob("runs/*/keys")):
        run = folder.parent.name
        if _RUN.fullmatch(run) and folder.is_dir() and not folder.is_symlink():
            row = await _row(journal, run)
            if row is None or (_MARK in row.key and row.state in ("queued", "running")):
                found.append(run)
    return found


async def take_back(world: FleetContext) -> dict[str, str]:
    """Restore such runs to be settled; return a message for each, by run.

    Call it before anything else runs. On a shared journal, and for another platform, they are only reported:
    their own journal, or their own platform, may be elsewhere.
    """
    found = {}
    for run in await keys_without_runs(world.state, world.journal):
        path = world.folder(run) / "trajectory.jsonl"
        first = next(iter(read(path)), None) if path.exists() else None
        head = first if isinstance(first, Header) else None
        here = (world.platform.name, world.platform.chain.id)
        if world.journal.shared or head is None or (head.platform, head.chain_id) != here:
            keys = world.folder(run) / "keys"
            where = f"a run of {head.platform}" if head else "a run without a trajectory"
            found[run] = f"keys of {where} that the journal does not know: {keys}; check what they hold"
            continue
        await _put_back(world, run, head)
        found[run] = (
            "the journal did not know this run (was it lost, or an older copy restored?): settling it"
        )
    return found


async def _put_back(world: FleetContext, run: str, head: Header) -> None:
    """The next start completes these steps after a crash between two of them."""
    lost = NewRun(
        run_id=run,
        persona=head.persona,
        key=f"{head.persona}{_MARK}{run}.",
        platform=world.platform.name,
        trigger=head.trigger,
        rung=head.rung,
        budget={},
    )
    await world.source.trigger(lost, hand=True)
    keys = RunKeys(world.folder(run))
    owners = keys.addresses()
    known = {(effect.kind, effect.ref) for effect in await world.journal.effects(run, ["key", "name"])}
    for label in keys.labels():
        if ("key", label) not in known:
            await world.journal.intend(run, "key", label, {})
        if label.startswith(f"qa-{run}-") and label in owners and ("name", label) not in known:
            await world.journal.intend(run, "name", label, {"owner": owners[label]})
    await world.journal.put(
        waits_key(run), "crashed\nthe journal had lost it; its keys were found at start-up"
    )
    await world.source.begin(run)


async def _row(journal: Journal, run: str) -> RunRow | None:
    try:
        return await journal.run(run)
    except UsageError:
        return None


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
            made = [event.call for event in read(path) if isinstance(event, ToolRequested | GateDenied)]
            detail = f"settled by another daemon: {row.detail}"
            footer = Footer(outcome=row.outcome, detail=detail, calls=max(made, default=0))
            Stream(row.run_id, clock=clock, sink=sink).emit(footer)
    finally:
        sink.close()
