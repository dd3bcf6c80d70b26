"""The journal: one object with everything that must survive `kill -9`.

Importing this module imports SQLAlchemy (0.2 s): only the composition root and tests do, everyone else
takes a `Journal` as an argument and imports rows from `fleet.store.rows`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from fleet.clock import Clock, SystemClock
from fleet.store.budget import Spending
from fleet.store.database import BUSY_S, MEMORY, Database
from fleet.store.effects import Effects
from fleet.store.findings import Findings
from fleet.store.history import Facts, History
from fleet.store.mirror import Mirror
from fleet.store.runs import Runs

__all__ = ["MEMORY", "Journal"]


class Journal(Runs, Effects, Findings, Spending, Mirror, History, Facts):
    """All methods are async; every write is durable (fsync) when it returns and is one crash point.

    Raises FleetError only: ConfigError (damaged, read-only, newer), TryAgain (locked, disk full),
    UsageError (unknown run), BudgetExceeded; ValueError and TypeError are the caller's bugs.
    """

    @classmethod
    async def open(cls, path: Path | str, *, clock: Clock | None = None, busy_s: float = BUSY_S) -> Self:
        """Open or create the journal at `path`; `MEMORY` is one that nobody else sees and nothing keeps.

        A write waits `busy_s` seconds for another process, then raises TryAgain.
        """
        return cls(await Database.open(path, busy_s=busy_s), clock or SystemClock())

    async def aclose(self) -> None:
        await self._db.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
