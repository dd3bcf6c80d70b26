"""One SQLite file, one connection, one transaction at a time, every commit durable."""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import anyio
import sqlalchemy
from sqlalchemy import (
    URL,
    CursorResult,
    Engine,
    Executable,
    Insert,
    ScalarResult,
    Select,
    Table,
    create_engine,
    event,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from fleet.errors import ConfigError, FleetError, TryAgain, UsageError
from fleet.store.sql.database import BUSY_S, AnyRow, Database, Mode, Parameters, Work
from fleet.store.sql.migrations import missing, settle_version

T = TypeVar("T")

MEMORY = ":memory:"

GRAIN_S = 2.0
"""The coarsest file timestamp: an answer this much younger than a change saw all of that change."""

PAGE = 100
"""Rows of one INSERT: more are hardly faster, and SQLite limits the number of values."""

_BEGIN: Mapping[Mode, str] = {"plain": "", "view": "BEGIN"}
"""What starts a transaction; a statement alone is its own view."""
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


class ThreadConnection(NamedTuple):
    """The connection for transaction functions; its answers are immediate."""

    near: sqlalchemy.Connection

    async def execute(
        self, statement: Executable, parameters: Parameters = None
    ) -> CursorResult[*tuple[Any, ...]]:
        return self.near.execute(statement, parameters)

    async def scalar(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401  as SQLAlchemy has it
        return self.near.scalar(statement, parameters)

    async def scalars(self, statement: Executable, parameters: Parameters = None) -> ScalarResult[Any]:
        return self.near.scalars(statement, parameters)


class ConnectionThread:
    """Runs transactions of one engine in a thread, one after the other: each is one trip there."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        try:  # start it now: work queued for a thread that failed to start would run with a later one
            self._thread.submit(int)
        except RuntimeError as error:
            raise TryAgain(
                f"the journal's thread: {error}",
                remedy="raise TasksMax or `ulimit -u`, or end other processes",
            ) from None

    async def run(self, begin: str, work: Work[T]) -> T:
        """One transaction started by `begin`; an exception rolls it back. "": autocommit per statement."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._transaction, begin, work)

    async def dispose(self) -> None:
        """Run in the existing thread: at the end of a process no other one may start."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown()

    def _transaction(self, begin: str, work: Work[T]) -> T:
        with self._engine.begin() as connection:
            if begin:
                connection.exec_driver_sql(begin)
            steps = work(ThreadConnection(connection)).__await__()
            try:
                next(steps)
            except StopIteration as end:  # the result of a function that never waits
                answer: T = end.value
                return answer
            steps.close()
            raise RuntimeError("a transaction waits for nothing but its database")


class SqliteDatabase(Database):
    """Opened by `open`; a write holds the write lock from its start."""

    def __init__(self, thread: ConnectionThread, where: str) -> None:
        super().__init__(thread, where)
        self._thread = thread
        self._turn = anyio.Lock()
        self._still, self._place = _Still(where), _Place(where)
        self._looks: dict[str, tuple[float, Sequence[AnyRow]]] = {}

    @classmethod
    async def open(cls, path: Path | str, *, busy_s: float = BUSY_S) -> Self:
        """Create or open the file (mode 0600); ConfigError when it is damaged, foreign or newer."""
        where = str(path)
        if where != MEMORY:
            _create(Path(path))
        engine = create_engine(
            URL.create("sqlite", database=where),
            poolclass=StaticPool,
            pool_reset_on_return=None,  # every transaction here ends before its connection goes back
            hide_parameters=True,  # they contain signed transactions, which must not reach an error text
            connect_args={"isolation_level": None, "timeout": busy_s, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare)
        database = cls(ConnectionThread(engine), where)

        async def settle(connection: ThreadConnection) -> None:
            settle_version(connection.near, where, alone=True)

        try:
            await database.write("store.open", settle)
            database._place.pin()
        except BaseException:
            await database.aclose()
            raise
        return database

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)

    async def insert_many(
        self, connection: ThreadConnection, statement: Insert, rows: Sequence[Mapping[str, Any]]
    ) -> Iterable[Any]:
        """As text for the driver: SQLAlchemy takes longer per row than SQLite."""
        compiled: Any = statement.compile(dialect=sqlite.dialect(), column_keys=list(rows[0]))
        head, one, tail = str(compiled).partition(f"({', '.join('?' * len(rows[0]))})")
        values = itemgetter(*compiled.positiontup)
        found: list[Any] = []
        for page in (rows[at : at + PAGE] for at in range(0, len(rows), PAGE)):
            many = head + ", ".join([one] * len(page)) + tail
            answer = connection.near.exec_driver_sql(many, tuple(chain.from_iterable(map(values, page))))
            found += answer.scalars()
        return found

    async def append_many(
        self, connection: ThreadConnection, table: Table, rows: Sequence[tuple[object, ...]]
    ) -> None:
        statement = str(sqlite.insert(table).compile(dialect=sqlite.dialect()))
        connection.near.exec_driver_sql(statement, list(rows))

    async def tuples(self, statement: Select[*tuple[Any, ...]]) -> Sequence[Any]:
        """As the driver has them: SQLAlchemy's rows take twice as long."""

        async def work(connection: ThreadConnection) -> Sequence[Any]:
            found = connection.near.execute(statement)
            cursor = found.cursor
            assert cursor is not None  # of a query
            answer: Sequence[Any] = cursor.fetchall()
            found.close()
            return answer

        return await self._apart(self._run("plain", work))

    async def look(self, key: str, statement: Select[*tuple[Any, ...]]) -> Sequence[AnyRow]:
        """The cached answer while no process writes."""
        still = self._still.since()
        asked, found = self._looks.get(key, (-math.inf, ()))
        if asked <= still + GRAIN_S:
            asked = time.monotonic()
            found = await self.rows(statement)
            self._looks[key] = asked, found
        return found

    async def faults(self) -> list[str]:
        async def work(connection: ThreadConnection) -> list[str]:
            report = connection.near.exec_driver_sql("PRAGMA integrity_check(10)").scalars()
            return [*(line for line in report if line != "ok"), *missing(connection.near)]

        return await self.read(work)

    async def _run(self, mode: Mode, work: Work[T]) -> T:
        self._place.check()
        with _translated(self._where):
            return await self._thread.run(_BEGIN.get(mode, "BEGIN IMMEDIATE"), work)

    async def _apart(self, transaction: Coroutine[Any, Any, T]) -> T:
        """One at a time: there is one connection."""
        try:
            await self._turn.acquire()
        except BaseException:
            transaction.close()
            raise
        try:
            return await super()._apart(transaction)
        finally:
            self._turn.release()


class _Still:
    """Since when a database's files are unchanged: two `stat` instead of a query in another thread.

    Every commit appends to the write-ahead log or overwrites it, every checkpoint writes the file itself.
    """

    def __init__(self, where: str) -> None:
        self._paths = [] if where == MEMORY else [where, f"{where}-wal"]
        self._seen: list[tuple[int, int, int]] = []
        self._since = math.inf

    def since(self) -> float:
        """Monotonic time of the first look that saw this state; infinity when unknown."""
        try:
            now = [(s.st_ino, s.st_size, s.st_mtime_ns) for s in map(os.stat, self._paths)]
        except OSError:
            now = []
        if now != self._seen:
            self._seen, self._since = now, time.monotonic()
        return self._since if now else math.inf


class _Place:
    """Which files an open database is: SQLite would keep writing to deleted ones."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._pinned: dict[str, tuple[int, int]] = {}

    def pin(self) -> None:
        """From now on they must stay the same: the log exists as long as the connection."""
        for path in (self._where, f"{self._where}-wal"):
            with suppress(FileNotFoundError):  # in memory, or on a file system without such a log
                found = os.stat(path)
                self._pinned[path] = (found.st_dev, found.st_ino)

    def check(self) -> None:
        """ConfigError once one of them was removed or replaced."""
        for path, pinned in self._pinned.items():
            try:
                found = os.stat(path)
                same = (found.st_dev, found.st_ino) == pinned
            except FileNotFoundError:
                same = False
            if not same:
                raise ConfigError(
                    f"{path}: removed or replaced under this process: nothing more can be recorded",
                    remedy=f"put {self._where} back, or leave it: the next start finds the keys without runs",
                )


def _create(path: Path) -> None:
    """Create the file before SQLite does, so that it is private.

    Only when it is new: closing any other descriptor of an open database drops this process's locks on it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not path.is_file():
            raise ConfigError(
                f"{path}: not a file", remedy="move it away; a new journal will be created"
            ) from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot create the journal: {error.strerror}",
            remedy="the state directory must exist and be writable by this user",
        ) from None


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    with closing(connection.cursor()) as cursor:
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")


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
    ("SQLITE_IOERR", TryAgain, "the disk refused", "check the disk (space, quota, errors), then try again"),
    ("SQLITE_READONLY", ConfigError, "read-only", "make the state directory writable for this user"),
    ("SQLITE_CANTOPEN", ConfigError, "cannot be opened", "make the state directory writable for this user"),
    ("SQLITE_PERM", ConfigError, "not permitted", "make the state directory writable for this user"),
    ("SQLITE_CORRUPT", ConfigError, "damaged", "move it away or restore a backup; nothing was changed"),
    ("SQLITE_NOTADB", ConfigError, "not a database", "move it away or restore a backup; nothing was changed"),
    ("SQLITE_CONSTRAINT_FOREIGNKEY", UsageError, "no such run", "name a run that the journal knows"),
)


def _translate(error: BaseException, where: str) -> BaseException:
    """Known conditions become FleetErrors with a remedy; anything else is our bug and stays unchanged."""
    code = str(getattr(error, "sqlite_errorname", ""))
    for prefix, kind, what, remedy in _KINDS:
        if code.startswith(prefix):
            return kind(f"{where}: {what}", remedy=remedy)
    return error
