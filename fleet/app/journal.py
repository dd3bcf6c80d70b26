"""Opens the configured journal of a state directory, for every command."""

from __future__ import annotations

from pathlib import Path

from fleet.config import load_fleet
from fleet.store.journal import Journal
from fleet.store.location import store_place


async def open_journal(state: Path) -> Journal:
    """Open the journal, creating it if missing; raises ConfigError, TryAgain."""
    return await Journal.open(store_place(load_fleet().store, state))


async def known_journal(state: Path) -> Journal | None:
    """Open the journal read-only; None if its file is missing. Creates nothing."""
    place = store_place(load_fleet().store, state)
    return None if isinstance(place, Path) and not place.exists() else await Journal.open(place)
