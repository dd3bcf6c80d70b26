"""Turns of several processes on one journal: a lease that is renewed while the work goes on."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import anyio

from fleet.clock import Clock, iso
from fleet.errors import FleetError, TryAgain
from fleet.store.journal import Journal

POSTING = "triage.posting"
"""Who posts now, and until when no other process does (`<token> <ISO time>`)."""
TURN_S = 120.0
"""Seconds after which the turn of a dead process ends; a daemon's own are `stalled_s` of the store."""
BEATS = 6
"""Renewals in that time, as many as a daemon has heartbeats."""


@asynccontextmanager
async def posting(
    journal: Journal, clock: Clock, key: str = POSTING, *, turn_s: float = TURN_S
) -> AsyncIterator[bool]:
    """Whether it is this process's turn to post (or to do what `key` names); given back at the end.

    Work whose turn a peer has taken, or can take since it could not be renewed, is cancelled, and TryAgain.
    """
    before, now = await journal.get(key), clock.now()
    taken = before.partition(" ")[2] if before else ""
    if taken and datetime.fromisoformat(taken) > now:
        yield False
        return
    lease = _Lease(journal, clock, key, before, timedelta(seconds=turn_s))
    if not await lease.renew():
        yield False
        return
    work = anyio.CancelScope()
    renewing = asyncio.create_task(lease.keep(work))
    try:
        with work:
            yield True
    finally:
        with anyio.CancelScope(shield=True):
            async with lease.changing:
                renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await journal.swap(key, lease.mine, "")
    if work.cancelled_caught:
        raise TryAgain(f"{lease.lost} the turn {key} of this process")


@dataclass(slots=True)
class _Lease:
    """A turn in the journal; `mine` is what stands there while it is ours."""

    journal: Journal
    clock: Clock
    key: str
    mine: str | None
    turn: timedelta
    changing: anyio.Lock = field(default_factory=anyio.Lock)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    ends: float = 0.0
    """On the event loop's clock: a beat before it ends in the journal, whose times are whole seconds."""
    lost: str = "the journal has not renewed"

    async def renew(self) -> bool:
        """Put off its end, if it is ours (or free) still."""
        began = asyncio.get_running_loop().time()
        renewed = f"{self.token} {iso(self.clock.now() + self.turn)}"
        kept = await self.journal.swap(self.key, self.mine, renewed)
        if kept:
            self.mine, self.ends = renewed, began + self.turn.total_seconds() - self._beat
        return kept

    async def keep(self, work: anyio.CancelScope) -> None:
        """Renew it as often as a daemon's heart beats; cancel the work once a peer has it, or could."""
        loop = asyncio.get_running_loop()
        try:
            while loop.time() < self.ends:
                await asyncio.sleep(min(self._beat, self.ends - loop.time()))
                try:
                    with anyio.move_on_after(self.ends - loop.time()):
                        async with self.changing:
                            kept = await self.renew()
                        if not kept:
                            self.lost = "a peer has taken"
                            return
                except FleetError:  # the journal is away: the turn lasts until its end
                    continue
        finally:
            work.cancel()

    @property
    def _beat(self) -> float:
        return self.turn.total_seconds() / BEATS
