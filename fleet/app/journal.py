"""Opens the configured journal of a state directory, for every command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

import anyio

from fleet.config import load_fleet
from fleet.errors import ConfigError, TryAgain
from fleet.store.journal import Journal
from fleet.store.location import store_place

Value = TypeVar("Value")


async def open_journal(state: Path) -> Journal:
    """Open the journal, creating it if missing; raises ConfigError, TryAgain."""
    return await Journal.open(store_place(load_fleet().store, state))


class SharedJournal:
    """A journal that stays open for the readers of one event loop: opening one takes longer than most reads
    do. After a fault it is opened again, once those who read it have left."""

    def __init__(self) -> None:
        self._place: Path | str = ""
        self._journal: Journal | None = None
        self._opening = anyio.Lock()
        self._readers, self._stale = 0, False

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Inside, `known_journal` lends this one."""
        token = _SHARED.set(self)
        self._readers += 1
        try:
            yield
        except (ConfigError, TryAgain):
            self._stale = True
            raise
        finally:
            _SHARED.reset(token)
            self._readers -= 1
            if self._stale and not self._readers:
                await self.aclose()

    async def lend(self, place: Path | str) -> Journal:
        async with self._opening:
            if self._journal is None:
                self._place, self._journal, self._stale = place, await Journal.open(place), False
            self._stale = self._stale or place != self._place
            return await Journal.open(place) if self._stale else self._journal.lent()

    async def aclose(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            await journal.aclose()


_SHARED: ContextVar[SharedJournal | None] = ContextVar("shared journal", default=None)


async def known_journal(state: Path) -> Journal | None:
    """Open the journal read-only; None if its file is missing. Creates nothing."""
    place = store_place(load_fleet().store, state)
    if isinstance(place, Path) and not place.exists():
        return None
    shared = _SHARED.get()
    return await (shared.lend(place) if shared else Journal.open(place))


async def from_journal(state: Path, read: Callable[[Journal], Awaitable[Value]], missing: Value) -> Value:
    """What `read` finds in the journal; `missing` without one."""
    if (journal := await known_journal(state)) is None:
        return missing
    async with journal:
        return await read(journal)
