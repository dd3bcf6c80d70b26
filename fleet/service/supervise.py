"""Side tasks and signals: nothing that matters dies quietly, and a daemon ends when it is told to."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NoReturn

import anyio

from fleet.errors import FleetError
from fleet.text import clean

_LOG = logging.getLogger("fleet.service")
ENDING = (signal.SIGTERM, signal.SIGINT)
ECHO_S = 1.0
"""A second signal so soon after the first is the same wish: `timeout` and shells send it to a group too."""


class SideTaskDied(FleetError):
    """A part that must run as long as the daemon does not: the daemon ends, and says which."""


async def side(name: str, run: Callable[[], Awaitable[None]]) -> NoReturn:
    """Run something that has no end of its own; SideTaskDied when it ends, whatever the reason."""
    try:
        await run()
    except Exception as error:
        _LOG.exception("%s died", name)
        said = clean(f"{type(error).__name__}: {error}", 300)
        raise SideTaskDied(
            f"{name} died: {said}", remedy="see the log; the daemon must be restarted"
        ) from error
    raise SideTaskDied(f"{name} ended by itself", remedy="the daemon must be restarted")


async def signals(
    received: AsyncIterator[signal.Signals],
    *,
    drain: Callable[[str], None],
    reload: Callable[[], Awaitable[None]],
) -> None:
    """The first SIGTERM or SIGINT drains, the second ends the process at once; SIGHUP reloads.

    Ending at once is safe at any instant: jails die with their parent, and the next start settles.
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
            os._exit(128 + number)
