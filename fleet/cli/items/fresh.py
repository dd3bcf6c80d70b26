"""Brings the worklist up to date with the log before it is shown, and says when that was not possible."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from fleet.app.journal import from_journal
from fleet.chain.log.end import log_end
from fleet.cli.daemon_page import daemon_of
from fleet.clock import iso, iso_seconds, span
from fleet.config import Platform, load_fleet, load_platform
from fleet.errors import FleetError
from fleet.findings.recurrence import key_of, read_recurrence
from fleet.store.journal import Journal
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.files import NAME, written

RECENT_S = 10.0
"""A list that a running daemon wrote at most this many seconds ago is not compared with the log."""


async def refresh(state: Path) -> FleetError | None:
    """Triage, without posting, if the list is older than the log; why it could not be compared, if so.

    web3 is loaded only for a pass of triage.
    """
    try:
        profile, _ = load_platform(load_fleet().platform, state)
        if await _current(state, profile):
            return None
        from fleet.app.reading import reading_world
        from fleet.triage.triage_pass import TRIAGE, pass_over

        begun = time.time()
        async with reading_world(state) as world:
            await pass_over(world, world.personas[TRIAGE], post=False)
        os.utime(state / NAME, (begun, begun))  # a pass leaves a list that says the same as it is
    except FleetError as error:
        return error
    return None


async def earlier_items(state: Path) -> tuple[WorklistItem, ...]:
    """Items of earlier epochs of the log, from the mirror; none where nothing is mirrored or configured."""
    try:
        load_platform(load_fleet().platform, state)
        from fleet.app.reading import reading_world
        from fleet.triage.triage_pass import earlier

        async with reading_world(state, ask=False) as world:
            return await earlier(world)
    except FleetError:
        return ()


async def _current(state: Path, profile: Platform) -> bool:
    """Whether the file covers the log, what was decided and looked at, and what came to an end by itself.

    Ages, and what is stale, are those of a day (UTC).
    """
    try:
        known = written(state)
    except FleetError:
        return False
    if known is None:
        return False
    at = (state / NAME).stat().st_mtime
    if not (daemon_of(state) and 0 <= time.time() - at < RECENT_S):
        end = await log_end(profile, state)
        if (known.as_of.entries, known.as_of.at) != (end.entries, iso_seconds(end.at) if end.entries else ""):
            return False
    now = iso(datetime.now(UTC))
    day = iso(datetime.fromtimestamp(at, UTC))[:10]
    if day < now[:10] or any(item.until and item.until <= now for item in known.closed):
        return False

    async def touched(journal: Journal) -> str:
        decided = [one.at for one in await journal.decisions(profile.name)]
        texts = (await journal.facts(key_of(profile.name))).values()
        figures = [read_recurrence(text) for text in texts]
        return max((*decided, *(one.looked for one in figures), *(one.last for one in figures)), default="")

    return await from_journal(state, touched, "") < iso(datetime.fromtimestamp(at, UTC))


def age(at: str, now: datetime) -> str:
    """How long ago an ISO time was, in one unit; "" for none."""
    return f"{span(at, iso(now))} old" if at else ""
