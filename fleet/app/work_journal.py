"""The journal of a process that executes runs; commands that only read take `journal.py`."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.clock import Clock
from fleet.runs.lifecycle import own_start
from fleet.store.dispatch.source import Embedded, Owner, Source
from fleet.store.journal import Journal

PATIENCE_S = 20.0
"""Seconds that a daemon waits for a restarting database server."""


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
