"""Opens the configured journal of a state directory, for every command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from fleet.config import load_fleet
from fleet.store.journal import Journal
from fleet.store.location import store_place

Value = TypeVar("Value")


async def open_journal(state: Path) -> Journal:
    """Open the journal, creating it if missing; raises ConfigError, TryAgain."""
    return await Journal.open(store_place(load_fleet().store, state))


async def known_journal(state: Path) -> Journal | None:
    """Open the journal read-only; None if its file is missing. Creates nothing."""
    place = store_place(load_fleet().store, state)
    return None if isinstance(place, Path) and not place.exists() else await Journal.open(place)


async def from_journal(state: Path, read: Callable[[Journal], Awaitable[Value]], missing: Value) -> Value:
    """What `read` finds in the journal; `missing` without one."""
    if (journal := await known_journal(state)) is None:
        return missing
    async with journal:
        return await read(journal)
