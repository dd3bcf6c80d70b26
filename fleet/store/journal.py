"""The journal: one object with everything that must survive `kill -9`.

Importing this module imports SQLAlchemy (0.2 s): only the composition root and tests do, everyone else
takes a `Journal` as an argument and imports rows from `fleet.store.rows`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from fleet.clock import Clock, SystemClock
from fleet.errors import ConfigError
from fleet.store.sql.database import BUSY_S, Connection, Database, OneView
from fleet.store.sql.sqlite import MEMORY, SqliteDatabase
from fleet.store.tables.budget import Spending
from fleet.store.tables.effects import Effects
from fleet.store.tables.findings import Findings
from fleet.store.tables.history import History, KnownFacts
from fleet.store.tables.items import Items
from fleet.store.tables.mirror import Mirror
from fleet.store.tables.proposals import Proposals
from fleet.store.tables.retention import Retention
from fleet.store.tables.runs import Runs

__all__ = ["MEMORY", "Journal"]

Value = TypeVar("Value")
URLS = ("postgresql://", "postgres://")


class Journal(
    Runs,
    Effects,
    Findings,
    Spending,
    Mirror,
    Items,
    Proposals,
    History,
    KnownFacts,
    Retention,
):
    """All methods are async; every write is durable (fsync) when it returns and is one crash point.

    Raises FleetError only: ConfigError (damaged, read-only, newer), TryAgain (locked, disk full),
    UsageError (unknown run), LostRun, BudgetExceeded; ValueError and TypeError are the caller's bugs.
    """

    @classmethod
    async def open(
        cls,
        place: Path | str,
        *,
        clock: Clock | None = None,
        busy_s: float = BUSY_S,
        keeper: str | None = None,
    ) -> Self:
        """Open or create the journal: a file, or `postgresql://user@host/database` for several daemons.

        `MEMORY` is private and not kept. A write waits `busy_s` seconds for another
        process or for a server that restarts, then raises TryAgain. `keeper` is the daemon that writes:
        its writes about a run that another one owns are refused with LostRun.
        """
        database: Database
        if isinstance(place, str) and place.startswith(URLS):
            try:
                from fleet.store.sql.postgres import (
                    PostgresDatabase,  # 70 ms that a journal in a file does not need
                )
            except ImportError:
                raise ConfigError(
                    "the journal is on PostgreSQL, and its driver is not installed",
                    remedy="install the extra: pip install 'qa-fleet[postgres]'",
                ) from None
            database = await PostgresDatabase.open(place, busy_s=busy_s)
        else:
            database = await SqliteDatabase.open(place, busy_s=busy_s)
        return cls(database, clock or SystemClock(), keeper)

    @property
    def shared(self) -> bool:
        """Whether other daemons may be active here: then an open run is not necessarily dead."""
        return self._db.shared

    async def faults(self) -> list[str]:
        """Faults of the database: damage, missing tables and columns. Reads all of it."""
        return await self._db.faults()

    async def at_once(self, read: Callable[[Journal], Awaitable[Value]]) -> Value:
        """What `read` finds: its reads are one view and one trip to the database. It awaits nothing else."""

        async def work(connection: Connection) -> Value:
            return await read(Journal(OneView(connection), self._clock, self._keeper))

        return await self._db.read(work)

    def lent(self) -> LentJournal:
        """The same journal for a reader that closes it: it stays open."""
        return LentJournal(self._db, self._clock, self._keeper)

    async def aclose(self) -> None:
        await self._db.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class LentJournal(Journal):
    """A journal that its owner keeps open."""

    async def aclose(self) -> None:
        """Leave it to its owner."""
