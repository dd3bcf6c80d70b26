"""Side tasks and signals: no side task dies silently, and signals end the daemon."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NoReturn

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from fleet.errors import FleetError
from fleet.text import clean

_LOG = logging.getLogger("fleet.service")
ENDING = (signal.SIGTERM, signal.SIGINT)
ECHO_S = 1.0
"""A second signal within this time is a duplicate: `timeout` and shells also signal the group."""


class SideTaskDied(FleetError):
    """A part that must run as long as the daemon ended; the daemon ends and names it."""


async def side(name: str, run: Callable[[], Awaitable[None]]) -> NoReturn:
    """Run a task that must not end; SideTaskDied when it does, for any reason.

    A task that is being cancelled must end, and a library that meets the cancellation may raise an error of
    its own: that is logged, and does not fail the daemon's stop.
    """
    try:
        await run()
    except Exception as error:
        _LOG.exception("%s died", name)
        await checkpoint_if_cancelled()
        said = clean(f"{type(error).__name__}: {error}", 300)
        raise SideTaskDied(
            f"{name} died: {said}", remedy="see the log; the daemon must be restarted"
        ) from error
    await checkpoint_if_cancelled()
    raise SideTaskDied(f"{name} ended unexpectedly", remedy="the daemon must be restarted")


async def handle_signals(
    received: AsyncIterator[signal.Signals],
    *,
    drain: Callable[[str], None],
    reload: Callable[[], Awaitable[None]],
    ending: Callable[[str], None],
) -> None:
    """The first SIGTERM or SIGINT drains, the second ends the process at once; SIGHUP reloads.

    `ending` records the reason first. Ending at once is safe at any instant: jails die with their parent,
    and the next start settles.
    """
    drained = 0.0
    async for number in received:
        if number == signal.SIGHUP:
            await reload()
        elif not drained:
            drained = anyio.current_time()
            drain(number.name)
        elif anyio.current_time() - drained > ECHO_S:
            _LOG.error("%s again: ending at once; the next start settles", number.name)
            ending(f"{number.name} again")
            os._exit(128 + number)
