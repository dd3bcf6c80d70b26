"""Whether the mirror of a platform's log is whole, and whether the log still is what the mirror says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import anyio

from fleet.chain.log.choice import log_of
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import FeedbackPort
from fleet.clock import minute
from fleet.config import Platform
from fleet.errors import ChainError, Unreachable, UsageError
from fleet.store.rows import EpochRow
from fleet.text import clean, counted

Value = TypeVar("Value")


@asynccontextmanager
async def open_log(profile: Platform, state: Path) -> AsyncIterator[FeedbackPort]:
    """The log of a platform, without a signer."""
    async with Rpc(profile.chain.rpc) as rpc:
        if profile.logs_on_chain:
            await rpc.check_target(profile)
        yield log_of(profile, state, rpc)


async def timely(act: Callable[[], Awaitable[Value]], seconds: float, what: str, log: FeedbackPort) -> Value:
    """What `act` answers; Unreachable, naming the log, when it takes longer."""
    try:
        with anyio.fail_after(seconds):
            return await act()
    except TimeoutError:
        where = log.url if isinstance(log, FeedbackLog) else "the log"
        why = f"{where}: {what} took longer than {seconds:g} s"
        raise Unreachable(why, remedy="ask for fewer with --last, or wait with --timeout") from None


async def verified(profile: Platform, state: Path, seconds: float) -> dict[str, Any]:
    """Each epoch with where its chain of hashes breaks, reorganisations, and how the newest epoch compares
    with the log, None with a `why` when that cannot be reached. UsageError without a mirror."""
    from fleet.app.journal import known_journal  # SQLAlchemy, which the log itself does without
    from fleet.triage.log.check import compare

    journal = await known_journal(state)
    if journal is None:
        raise UsageError("nothing is mirrored here yet", remedy="fleet items")
    async with journal:
        name, why = profile.log_name, ""
        held = epochs_of(await journal.epochs(), name)
        rows = [asdict(one) | {"broken_at": await journal.first_broken(one.epoch)} for one in held]
        moved = [asdict(one) for one in await journal.rewinds() if one.log in (name, "")]
        chain: dict[str, Any] | None = None
        try:
            if held:
                at = held[-1]
                async with open_log(profile, state) as log:
                    looked = timely(
                        lambda: compare(log, journal, at.epoch, at.entries), seconds, "comparing", log
                    )
                    chain = asdict(await looked)
        except (Unreachable, ChainError) as error:
            why = str(error)
    bad = any(row["broken_at"] is not None for row in rows)
    differs = bad or (chain is not None and chain["differs"] is not None)
    return {"log": name, "epochs": rows, "rewinds": moved, "compared": chain, "why": why, "differs": differs}


def epochs_of(epochs: Iterable[EpochRow], log: str) -> list[EpochRow]:
    """The epochs of one log; a journal older than the names holds only one log."""
    return [one for one in epochs if one.log in (log, "")]


def lines_of(found: dict[str, Any]) -> list[str]:
    """What `verified` found, in lines."""
    lines = []
    for row in found["epochs"]:
        broken = row["broken_at"]
        state_of = "whole" if broken is None else f"broken at index {broken}"
        entries = counted(row["entries"], "entry", "entries")
        lines.append(f"epoch {row['epoch']} ({row['why'] or 'unnamed'}): {entries}, {state_of}")
    for row in found["rewinds"]:
        gone = counted(row["gone"], "entry", "entries")
        what = "a clear was undone" if row["back"] else f"{gone} from {row['index']} on replaced"
        lines.append(f"{minute(row['at'])} UTC reorganisation in epoch {row['epoch']}: {what}")
    if (seen := found["compared"]) is None:
        lines.append(f"not compared with the log{': ' if found['why'] else ''}{found['why']}")
    elif seen["differs"] is not None:
        there = counted(seen["counted"], "entry", "entries")
        lines.append(f"the log differs from index {seen['differs']} on ({there} there)")
    else:
        lines.append(f"the log agrees: {seen['checked']} of {seen['mirrored']} entries compared")
    return [clean(one, 600) for one in lines]
