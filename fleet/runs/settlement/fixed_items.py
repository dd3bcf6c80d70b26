"""The resolve records of what a run found clean, written at its end.

A run that sees an item again before triage looks must find on the log that it was fixed: else its report is
a repetition of the old one, and not a regression.
"""

from __future__ import annotations

from collections.abc import Collection

from fleet.errors import FleetError, LostRun
from fleet.findings.records import fixed_record, write_record
from fleet.findings.recurrence import key_of, read_recurrence
from fleet.runs.context import FleetContext
from fleet.runs.settlement.turn import posting
from fleet.store.rows import ItemRow

HIDDEN = frozenset({"dismissed", "snoozed"})
"""States that a person set: what happens meanwhile is not shown, and gets no record."""


async def record_fixed(world: FleetContext, run: str, clean: Collection[ItemRow]) -> None:
    """Post one record for each item that is clean by this run and on the log without one.

    What cannot be posted now stays due for triage. LostRun when a peer has taken the run.
    """
    due = [item for item in clean if item.state not in HIDDEN]
    if not due:
        return
    try:
        async with posting(world.journal, world.clock, turn_s=world.config.store.stalled_s) as mine:
            for item in due if mine else ():
                await _record(world, run, item)
    except LostRun:
        raise
    except FleetError:  # a silent node, STOP, a run that posts nothing: triage comes to it
        return


async def _record(world: FleetContext, run: str, item: ItemRow) -> None:
    known = read_recurrence(await world.journal.get(key_of(world.platform.name, item.fingerprint)))
    newest = await world.chain.own.newest(world.chain.log, (item.fingerprint, *item.names))
    if known.clean_run != run or newest is None or newest.resolves:
        return  # seen again meanwhile, or never on this log, or recorded
    record = fixed_record(item.fingerprint, known.clean_at, known.clean_run)
    text = write_record(record, surface=item.surface, title=item.title, redactor=world.redactor)
    await world.chain.log.post(text, charge="none")
