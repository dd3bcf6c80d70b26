"""Record who stopped the fleet, let it go on, or moved its dial, whether or not the journal answers."""

from __future__ import annotations

import json
from pathlib import Path

from fleet.app.journal import known_journal
from fleet.clock import SystemClock, iso_ms
from fleet.errors import FleetError
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.call.halt import DIALS, Halt, journal_halt, note_halt
from fleet.text import line

VAULTS = "vault:"
"""Prefix of the facts about who opened or destroyed a credential that runs found, by their times."""


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


async def record_vault(state: Path, act: str, who: str, why: str) -> str:
    """Keep who opens or destroys what runs found; why it is not on record, "" if it is."""
    clock = SystemClock()
    one = Decision(
        f"{who} {act}",
        "leave it sealed, or do so",
        act,
        why,
        "none: what was seen is known",
        charter="the operator's",
    )
    if not DecisionFile(state, clock).record(one, run="none", turn=0):
        return "DECISIONS.md cannot be written"
    when = iso_ms(clock.now())
    known = {"act": line(act, 300), "who": line(who, 200), "why": line(why, 500), "when": when}
    try:
        if (journal := await known_journal(state)) is not None:
            async with journal:
                await journal.put(f"{VAULTS}{when}", json.dumps(known))
    except FleetError as error:
        return str(error)
    return ""


async def record_steering(state: Path, what: str, who: str, why: str) -> str:
    """Keep who changed what is asked while runs go on: in DECISIONS.md, and beside the moves of the dial."""
    one = Decision(
        f"{who} steers the runs",
        "as the profile says, or otherwise within it",
        what,
        why,
        "fleet runs steer",
        charter="the operator's",
    )
    if not DecisionFile(state, SystemClock()).record(one, run="none", turn=0):
        return "DECISIONS.md cannot be written"
    return await _move(state, f"steer: {what}", who, why)


async def record_dial(state: Path, move: str, who: str, why: str) -> str:
    """Keep a move of the dial in the journal, which no rotation removes; why it is not there, "" if it is."""
    return await _move(state, f"dial {move}", who, why)


async def _move(state: Path, act: str, who: str, why: str) -> str:
    when = iso_ms(SystemClock().now())
    known = {"act": line(act, 500), "who": line(who, 200), "why": line(why, 500), "when": when}
    try:
        if (journal := await known_journal(state)) is not None:
            async with journal:
                await journal.put(f"{DIALS}{when}", json.dumps(known))
    except FleetError as error:
        return str(error)
    return ""
