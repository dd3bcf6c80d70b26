"""Delivers a firing to the sink; a sink that raises or hangs costs only that firing."""

from __future__ import annotations

import logging

import anyio

from fleet.triggers.model import Firing, FiringSink, Skip

SINK_S = 10.0
"""A sink only records; one that takes longer is broken, and other firings are waiting."""

TOO_LONG = "it could not be recorded: the sink took too long"

_LOG = logging.getLogger("fleet.triggers")


async def deliver(sink: FiringSink, firing: Firing) -> str:
    """Fire; "" if the sink accepted it in time, else why not."""
    with anyio.move_on_after(SINK_S):
        return await attempt(sink, firing)
    return TOO_LONG


async def attempt(sink: FiringSink, firing: Firing) -> str:
    """Fire; "" if the sink accepted it, else why not. The caller sets the deadline."""
    try:
        await sink.fire(firing)
    except Exception as error:
        return f"it could not be recorded: {described(error)}"
    return ""


async def tell(sink: FiringSink, skip: Skip) -> None:
    """Record a Skip; if that fails, log it."""
    try:
        with anyio.fail_after(SINK_S):
            await sink.skip(skip)
    except Exception as error:
        _LOG.error(
            "%s skipped (%s), and that could not be recorded: %s", skip.key, skip.reason, described(error)
        )


def described(error: Exception) -> str:
    """The type and message of an error, in one short line."""
    return f"{type(error).__name__}: {str(error)[:300]}".rstrip(": ")
