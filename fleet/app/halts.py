"""Record who stopped the fleet, or let it go on, whether or not the journal answers."""

from __future__ import annotations

from pathlib import Path

from fleet.app.journal import known_journal
from fleet.clock import SystemClock
from fleet.errors import FleetError
from fleet.runs.call.halt import Halt, journal_halt, note_halt


async def record_halt(state: Path, halt: Halt) -> str:
    """Write it into DECISIONS.md and the journal; why the journal does not have it, "" if it does.

    A stop must not wait for a database, so this follows it; a resume is recorded before it takes effect.
    """
    clock = SystemClock()
    note_halt(state, clock, halt)
    try:
        if (journal := await known_journal(state)) is not None:
            async with journal:
                await journal_halt(journal, clock, halt)
    except FleetError as error:
        return str(error)
    return ""
