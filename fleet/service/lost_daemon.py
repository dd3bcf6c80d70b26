"""A daemon that ended without a stop: a kill, a power failure. Its file of events shows it afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fleet.clock import minute
from fleet.errors import UsageError
from fleet.events.chain import unlinked
from fleet.events.daemon_events import FEED, DaemonLost
from fleet.files import UnfitFile, open_regular
from fleet.store.journal import Journal
from fleet.text import counted

BLOCK = 1 << 18
LONGEST = 1 << 20
"""Bytes of a line; what is longer is left out."""


async def lost_daemon(state: Path, journal: Journal | None, *, running: int = 0) -> DaemonLost | None:
    """The last daemon of this directory, unless it was stopped or has the pid `running`.

    An event that is recorded already has its `at`. Only runs that the daemon began itself are named: their
    folders are here and their rows have its pid, even when a peer settles them.
    """
    newest = ""
    for event in events_newest_first(state):
        newest = newest or event["at"]
        if event["type"] == "daemon.stopped":
            return None
        if event["type"] == "daemon.lost":
            with suppress(ValidationError):  # an edited file does not prevent a start
                return DaemonLost.model_validate(event)
        if event["type"] == "daemon.started":
            pid = event["pid"] if isinstance(event.get("pid"), int) else 0
            return None if pid == running else await _lost(state, journal, newest, event["at"], pid)
    rotated = (state / FEED).with_suffix(".1.jsonl").exists()  # its start is in neither file any more
    return await _lost(state, journal, newest, "", running) if newest and rotated and not running else None


async def _lost(state: Path, journal: Journal | None, newest: str, since: str, pid: int) -> DaemonLost:
    cut: dict[str, str] = {}
    for path in sorted(state.glob("runs/*/trajectory.jsonl")):
        last = next(records_newest_first(path), None)
        if last is None or last["type"] == "footer" or last["at"] < since or journal is None:
            continue
        with suppress(UsageError):
            if pid in (0, (await journal.run(path.parent.name)).pid):
                cut[path.parent.name] = last["at"]
    return DaemonLost(last_seen=max(newest, *cut.values()) if cut else newest, runs=tuple(cut))


def in_words(lost: DaemonLost) -> str:
    """What an operator reads of it."""
    runs = f" with {counted(len(lost.runs), 'run')} in flight ({', '.join(lost.runs[:5])})" * bool(lost.runs)
    return f"it died at {minute(lost.last_seen)} UTC{runs}"


def events_newest_first(state: Path) -> Iterator[dict[str, Any]]:
    """The readable events of the daemons of a state directory, from both files."""
    for path in (state / FEED, (state / FEED).with_suffix(".1.jsonl")):
        yield from records_newest_first(path)


def records_newest_first(path: Path) -> Iterator[dict[str, Any]]:
    """Records of a file of JSON lines that have type and time, the last first; torn lines are left out."""
    for line in _lines_newest_first(path):
        try:
            found = json.loads(unlinked(line))
        except (ValueError, RecursionError):
            continue
        if (
            isinstance(found, dict)
            and isinstance(found.get("at"), str)
            and isinstance(found.get("type"), str)
        ):
            yield found


def _lines_newest_first(path: Path) -> Iterator[bytes]:
    try:
        descriptor = open_regular(path)
    except (OSError, UnfitFile):
        return
    with os.fdopen(descriptor, "rb") as handle:
        position, rest = os.fstat(handle.fileno()).st_size, b""
        while position:
            begin = max(0, position - BLOCK)
            first, *whole = (os.pread(handle.fileno(), position - begin, begin) + rest).split(b"\n")
            yield from reversed(whole)
            position, rest = begin, first if len(first) <= LONGEST else b""
        yield rest
