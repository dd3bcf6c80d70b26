"""Opens the configured journal of a state directory, for every command."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.clock import Clock
from fleet.config import load_fleet
from fleet.runs.lifecycle import own_start
from fleet.store.dispatch.source import Embedded, Owner, Source
from fleet.store.journal import Journal
from fleet.store.location import store_place

PATIENCE_S = 20.0
"""Seconds that a daemon waits for a restarting database server."""


async def open_journal(state: Path) -> Journal:
    """Open the journal, creating it if missing; raises ConfigError, TryAgain."""
    return await Journal.open(store_place(load_fleet().store, state))


async def known_journal(state: Path) -> Journal | None:
    """Open the journal read-only; None if its file is missing. Creates nothing."""
    place = store_place(load_fleet().store, state)
    return None if isinstance(place, Path) and not place.exists() else await Journal.open(place)


@asynccontextmanager
async def at_work(
    place: Path | str,
    platform: str,
    *,
    stalled_s: float,
    clock: Clock | None = None,
    rung: Callable[[], str] = str,
    found: Callable[[], object] = bool,
) -> AsyncIterator[tuple[Journal, Source]]:
    """The journal of a process that executes runs, and the source of its runs.

    `rung` is called at each claim; `found` as in Dispatcher.
    """
    if isinstance(place, Path):
        async with await Journal.open(place, clock=clock, keeper="") as journal:
            yield journal, Embedded(journal, platform, Owner(os.getpid(), own_start()), rung=rung)
        return
    owner = Owner(os.getpid(), own_start(), f"{socket.gethostname()}-{secrets.token_hex(4)}")
    async with await Journal.open(place, clock=clock, busy_s=PATIENCE_S, keeper=owner.daemon) as journal:
        from fleet.store.dispatch.dispatcher import (
            Dispatcher,  # from the extra `postgres`, which the journal requires
        )

        made = Dispatcher(place, journal, platform, owner, stalled_s=stalled_s, rung=rung, found=found)
        async with made.open() as source:
            yield journal, source
