"""One SQLite file, one connection, one transaction at a time, every commit on the disk.

The journal's methods know only `rows`, `read` and `write`; everything that is SQLite's own lives here,
so that another database is another class of this shape. A transaction that has begun ends, whatever
happens to the task that asked for it: what a cancelled run had begun to record is recorded.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import anyio
from sqlalchemy import URL, Row, Select, event, inspect, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import StaticPool

from fleet.errors import ConfigError, FleetError, TryAgain, UsageError
from fleet.store import crash
from fleet.store.schema import META, METADATA, SCHEMA_VERSION

T = TypeVar("T")
Work: TypeAlias = Callable[[AsyncConnection], Awaitable[T]]
AnyRow: TypeAlias = Row[*tuple[Any, ...]]

MEMORY = ":memory:"
BUSY_S = 5.0
"""How long a write waits for another process before it gives up with TryAgain."""

insert = sqlite.insert
"""INSERT with ON CONFLICT; PostgreSQL's has the same shape."""

_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


class Database:
    """Opened by `open`, closed by `aclose`; foreign exceptions leave it as FleetError."""

    def __init__(self, engine: AsyncEngine, where: str) -> None:
        self._engine = engine
        self._where = where
        self._turn = anyio.Lock()

    @classmethod
    async def open(cls, path: Path | str, *, busy_s: float = BUSY_S) -> Database:
        """Create or open the file (mode 0600); ConfigError when it is damaged, foreign or newer."""
        where = str(path)
        if where != MEMORY:
            _create(Path(path))
        engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=where),
            poolclass=StaticPool,
            pool_reset_on_return=None,  # every transaction here ends before its connection goes back
            hide_parameters=True,  # they hold signed transactions: never in an error text
            connect_args={"isolation_level": None, "timeout": busy_s},
        )
        event.listen(engine.sync_engine, "connect", _prepare)
        event.listen(engine.sync_engine, "begin", _begin)
        database = cls(engine, where)
        try:
            await database.write("store.open", lambda connection: connection.run_sync(_migrate, where))
        except BaseException:
            await database.aclose()
            raise
        return database

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._engine.dispose()

    async def rows(self, statement: Select[*tuple[Any, ...]]) -> Sequence[AnyRow]:
        """All rows of one query."""

        async def work(connection: AsyncConnection) -> Sequence[AnyRow]:
            return (await connection.execute(statement)).all()

        return await self._apart(self._transaction(work, ""))  # a statement is its own view

    async def read(self, work: Work[T]) -> T:
        """One consistent view; `work` must not write."""
        return await self._apart(self._transaction(work, "BEGIN"))

    async def write(self, step: str, work: Work[T]) -> T:
        """One transaction that holds the write lock from its start; on the disk when this returns.

        An exception rolls back. `step` names the crash point that follows the commit.
        """

        async def transaction() -> T:
            crash.about()
            done = await self._transaction(work, "BEGIN IMMEDIATE")
            crash.step(step)
            return done

        return await self._apart(transaction())

    async def _transaction(self, work: Work[T], begin: str) -> T:
        with _translated(self._where):
            async with self._engine.connect() as connection:
                await connection.execution_options(fleet_begin=begin)
                async with connection.begin():
                    return await work(connection)

    async def _apart(self, transaction: Coroutine[Any, Any, T]) -> T:
        """Run a transaction, when its turn comes, in a task of its own that the caller's end does not end.

        A driver that is interrupted between BEGIN and COMMIT leaves a connection that keeps the lock.
        """
        try:
            await self._turn.acquire()
        except BaseException:
            transaction.close()
            raise
        try:
            task = asyncio.ensure_future(transaction)
            with anyio.CancelScope(shield=True):
                await _finished(task)
            return task.result()
        finally:
            self._turn.release()


async def _finished(task: asyncio.Future[Any]) -> None:
    """Wait for the end, also while being cancelled; then let the cancellation go on."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # seen: nobody is left to raise it to
        raise cancelled


def _create(path: Path) -> None:
    """Make the file before SQLite does, so that it is private.

    Only when it is new: closing any other descriptor of an open database drops this process's locks on it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not path.is_file():
            raise ConfigError(
                f"{path}: not a file", remedy="move it away; the journal is made anew"
            ) from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot create the journal: {error.strerror}",
            remedy="the state directory must exist and be writable by this user",
        ) from None


def _prepare(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    try:
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
    finally:
        cursor.close()


def _begin(connection: Connection) -> None:
    """SQLite's own BEGIN, in one hop to the driver's thread instead of three."""
    statement = connection.get_execution_options().get("fleet_begin")
    driver: Any = connection.connection.dbapi_connection
    if statement:
        driver.run_async(lambda raw: raw.execute_fetchall(statement))


def _migrate(connection: Connection, where: str) -> None:
    """An empty file becomes a journal; anything else must be one, of a version this program knows."""
    tables = set(inspect(connection).get_table_names())
    if not tables:
        METADATA.create_all(connection, checkfirst=False)
        connection.execute(insert(META).values(key="schema", value=str(SCHEMA_VERSION)))
        return
    found = None
    if META.name in tables:
        found = connection.execute(select(META.c.value).where(META.c.key == "schema")).scalar()
    if found is None or not found.isdecimal():
        raise ConfigError(
            f"{where}: a database, but not a journal of this fleet", remedy="name another state directory"
        )
    if int(found) > SCHEMA_VERSION:
        raise ConfigError(
            f"{where}: written by a newer version (schema {found}; this program knows {SCHEMA_VERSION})",
            remedy="run the newer fleet, or name another state directory",
        )


@contextmanager
def _translated(where: str) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise _translate(error.orig or error, where) from error
    except sqlite3.Error as error:
        raise _translate(error, where) from error


_KINDS: tuple[tuple[str, type[FleetError], str, str], ...] = (
    ("SQLITE_BUSY", TryAgain, "another process is writing", "try again; one daemon per state directory"),
    ("SQLITE_LOCKED", TryAgain, "another process is writing", "try again; one daemon per state directory"),
    (
        "SQLITE_FULL",
        TryAgain,
        "the disk is full; what was recorded before is safe",
        "free some space, then try again",
    ),
    ("SQLITE_IOERR", TryAgain, "the disk refused", "look at the disk (space, quota, errors), then try again"),
    ("SQLITE_READONLY", ConfigError, "read-only", "make the state directory writable for this user"),
    ("SQLITE_CANTOPEN", ConfigError, "cannot be opened", "make the state directory writable for this user"),
    ("SQLITE_PERM", ConfigError, "not permitted", "make the state directory writable for this user"),
    ("SQLITE_CORRUPT", ConfigError, "damaged", "move it away or restore a backup; nothing was changed"),
    ("SQLITE_NOTADB", ConfigError, "not a database", "move it away or restore a backup; nothing was changed"),
    ("SQLITE_CONSTRAINT_FOREIGNKEY", UsageError, "no such run", "name a run that the journal knows"),
)


def _translate(error: BaseException, where: str) -> BaseException:
    """Known conditions become FleetErrors with a remedy; anything else is our bug and stays what it is."""
    code = str(getattr(error, "sqlite_errorname", ""))
    for prefix, kind, what, remedy in _KINDS:
        if code.startswith(prefix):
            return kind(f"{where}: {what}", remedy=remedy)
    return error
