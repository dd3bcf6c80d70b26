"""`fleet items rebuild`: everything of triage that the log and published decisions hold, made again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from fleet.app.reading import ReadingWorld, reading_world
from fleet.text import counted
from fleet.triage.triage_pass import TRIAGE, rebuild

LOOK_S = 0.5
"""Seconds between two lines of progress."""


async def rebuilt(state: Path, *, dry_run: bool) -> dict[str, Any]:
    """What the log holds, what is mirrored, and, unless `dry_run`, what was made of it."""
    async with reading_world(state) as world:
        epoch, mirrored = await world.journal.mirror_cursor()
        data: dict[str, Any] = {
            "dry_run": dry_run,
            "platform": world.platform.name,
            "entries": await world.chain.log.count(),
            "epoch": epoch,
            "mirrored": mirrored,
        }
        if dry_run:
            return data
        async with anyio.create_task_group() as group:
            if sys.stderr.isatty():
                group.start_soon(_progress, world, data["entries"])
            result = await rebuild(world, world.personas[TRIAGE])
            group.cancel_scope.cancel()
        epoch, mirrored = await world.journal.mirror_cursor()
        return data | {
            "epoch": epoch,
            "mirrored": mirrored,
            "items": len(result.items),
            "changed": result.changed,
        }


def in_words(data: dict[str, Any]) -> str:
    """The result in one line."""
    if data["dry_run"]:
        had = f"{data['mirrored']} mirrored in epoch {data['epoch']}"
        entries = counted(data["entries"], "log entry", "log entries")
        return f"would rebuild from {entries} of {data['platform']} ({had})"
    changed = "" if data["changed"] else ", as before"
    entries = counted(data["mirrored"], "log entry", "log entries")
    return f"rebuilt from {entries} of {data['platform']}: {counted(data['items'], 'item')}{changed}"


async def _progress(world: ReadingWorld, total: int) -> None:
    """One line on the terminal that counts the mirrored entries."""
    while True:
        _, mirrored = await world.journal.mirror_cursor()
        print(f"\rmirrored {mirrored} of {total} entries", end="", file=sys.stderr, flush=True)
        if mirrored >= total:
            print("\rranking                                 ", file=sys.stderr, flush=True)
            return
        await anyio.sleep(LOOK_S)
