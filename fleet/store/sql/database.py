"""The database interface of the journal's methods: `rows`, `read`, `write`, and an `insert` with ON CONFLICT.

`sqlite.py` and `postgres.py` implement it. In both a write is on the disk when it returns and behaves as if
it ran alone, and a transaction that has begun completes, whatever happens to the task that asked for it: what
a cancelled run had begun to record is recorded.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
from sqlalchemy import CursorResult, Executable, Insert, Row, ScalarResult, Select, Table, insert
from sqlalchemy.exc import StatementError

from fleet.store import failpoints

T = TypeVar("T")
AnyRow: TypeAlias = Row[*tuple[Any, ...]]
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class Connection(Protocol):
    """A transaction's connection: the part of SQLAlchemy's AsyncConnection that the journal uses."""

    async def execute(
        self, statement: Executable, parameters: Parameters = None
    ) -> CursorResult[*tuple[Any, ...]]: ...

    async def scalar(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> Any: ...  # noqa: ANN401  as SQLAlchemy has it

    async def scalars(self, statement: Executable, parameters: Parameters = None) -> ScalarResult[Any]: ...


Work: TypeAlias = Callable[[Any], Awaitable[T]]
"""A function over a Connection. It awaits nothing else, and may be called again after a rollback:
it changes only the database."""

Mode: TypeAlias = Literal["plain", "view", "alone", "schema"]
"""What a transaction may see: each statement the present, all of it one view, as if it ran alone; `schema`:
what others committed meanwhile, for creating tables under a lock."""

BUSY_S = 5.0
"""How long a write waits for others, or for a restarting server, before it raises TryAgain."""


class _Engine(Protocol):
    async def dispose(self) -> None: ...


class Database(ABC):
    """Closed by `aclose`; foreign exceptions leave it as FleetError."""

    shared = False
    """Whether daemons on other machines may be writing here too."""

    def __init__(self, engine: _Engine, where: str) -> None:
        self._engine = engine
        self._where = where

    @abstractmethod
    def insert(self, table: Table) -> Any:  # noqa: ANN401  as SQLAlchemy has it
        """INSERT with `on_conflict_do_nothing`, `on_conflict_do_update` and `returning`."""

    async def insert_many(
        self,
        connection: Any,  # noqa: ANN401  as SQLAlchemy has it
        statement: Insert,
        rows: Sequence[Mapping[str, Any]],
    ) -> Iterable[Any]:
        """Within a write: what an `insert` with RETURNING answers for many rows of the same columns.

        Their texts are `plain` already.
        """
        found: Iterable[Any] = await connection.scalars(statement, rows)
        return found

    async def append_many(
        self,
        connection: Any,  # noqa: ANN401  as SQLAlchemy has it
        table: Table,
        rows: Sequence[tuple[object, ...]],
    ) -> None:
        """Within a write: insert rows of all columns of a table, in order; texts are `plain` already."""
        names = table.columns.keys()
        await self.insert_many(
            connection,
            insert(table).returning(*table.primary_key),
            [dict(zip(names, row, strict=True)) for row in rows],
        )

    async def rows(self, statement: Select[*tuple[Any, ...]]) -> Sequence[AnyRow]:
        """All rows of one query."""

        async def work(connection: Connection) -> Sequence[AnyRow]:
            return (await connection.execute(statement)).all()

        return await self._apart(self._run("plain", work))

    async def tuples(self, statement: Select[*tuple[Any, ...]]) -> Sequence[Any]:
        """`rows` of plain columns, for readers of a million."""
        return await self.rows(statement)

    async def look(
        self,
        key: str,  # noqa: ARG002  the port's
        statement: Select[*tuple[Any, ...]],
    ) -> Sequence[AnyRow]:
        """`rows` of a frequent query, cached under `key`."""
        return await self.rows(statement)

    async def read(self, work: Work[T]) -> T:
        """One consistent view; `work` must not write."""
        return await self._apart(self._run("view", work))

    @abstractmethod
    async def _run(self, mode: Mode, work: Work[T]) -> T:
        """One transaction; on the disk when this returns."""

    async def write(self, step: str, work: Work[T]) -> T:
        """One transaction as if it ran alone; on the disk when this returns.

        An exception rolls back. `step` names the crash point that follows the commit.
        """

        async def whole(connection: Connection) -> T:
            try:
                done = await work(connection)
            except StatementError as error:
                if isinstance(error.orig, TypeError | ValueError):
                    raise error.orig from None  # of the caller: a value that its column cannot hold
                raise
            failpoints.point(f"in {step}")
            return done

        return await self._recorded(step, "alone", whole)

    async def _recorded(self, step: str, mode: Mode, work: Work[T]) -> T:
        async def transaction() -> T:
            failpoints.about(step)
            done = await self._run(mode, work)
            failpoints.step(step)
            return done

        return await self._apart(transaction())

    async def _apart(self, transaction: Coroutine[Any, Any, T]) -> T:
        """Run a transaction in its own task, which survives the caller's cancellation.

        A driver that is interrupted between BEGIN and COMMIT leaves a connection that keeps the lock.
        """
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            transaction.close()
            raise
        task = asyncio.ensure_future(transaction)
        with anyio.CancelScope(shield=True):
            # wait for the end, also while being cancelled; then continue the cancellation
            cancelled: asyncio.CancelledError | None = None
            while not task.done():
                try:
                    await asyncio.wait([task])
                except asyncio.CancelledError as error:
                    cancelled = error
            if cancelled is not None:
                task.exception()  # mark as retrieved: no caller is left to raise it to
                raise cancelled
        return task.result()

    async def faults(self) -> list[str]:
        """Faults of the database on disk; a server checks its own."""
        return []

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._engine.dispose()


class OneView(Database):
    """A transaction that only reads, as the database of a journal: all that is read there is one view."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, table: Table) -> Any:  # noqa: ANN401  as SQLAlchemy has it
        raise TypeError(f"{table.name}: a view is only read")

    async def _run(self, mode: Mode, work: Work[T]) -> T:
        if mode not in ("plain", "view"):
            raise TypeError("a view is only read")
        return await work(self._connection)

    async def _apart(self, transaction: Coroutine[Any, Any, T]) -> T:
        return await transaction
