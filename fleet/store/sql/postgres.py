"""One PostgreSQL database for many daemons: every write is serialisable and retried while that helps.

A write that conflicted, or met a restarting server, starts over until `busy_s` have passed. It was rolled
back, or its receipt proves that it was committed, so it never takes effect twice, even when the connection
ends during COMMIT. Only a server that stays away after that leaves a doubt, which the error states.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

import anyio
import psycopg
from sqlalchemy import (
    URL,
    Column,
    DateTime,
    MetaData,
    Table,
    Uuid,
    delete,
    event,
    func,
    make_url,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from fleet.errors import ConfigError, FleetError, TryAgain
from fleet.retry import DATABASE
from fleet.store.sql.database import BUSY_S, Database, Mode, Work
from fleet.store.sql.migrations import settle_version
from fleet.store.sql.server import SESSION, is_lost, link, translate

T = TypeVar("T")

CONNECTIONS = 5
"""Most connections that one daemon keeps; further requests wait for one."""

_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(7163398)")  # "qafleet" on a phone's keys, cut

_RECEIPTS = Table(
    "receipts",
    MetaData(),  # not among the journal's own tables: its schema and version are the same on every database
    Column("receipt", Uuid, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
"""How a write learns the result of an unanswered COMMIT.

Each transaction inserts its own receipt; a retried write first inserts the same one. The unique key decides:
it waits for an earlier attempt that the server is still processing, and refuses once that one was committed.
No journal transaction reads a receipt, so receipts cause no conflicts. `pg_xact_status` would need no table,
but a crashed server may give the number of a lost transaction to another one.
"""
_PUT_DOWN = "INSERT INTO receipts (receipt) VALUES (%s) ON CONFLICT DO NOTHING"
RECEIPTS_KEPT = 250
"""Writes between two clean-ups of old receipts."""
_OLD = text("now() - interval '1 hour'")  # far longer than any write is retried


async def _put_down(connection: AsyncConnection, receipt: UUID) -> bool:
    """False when an earlier attempt with this receipt is committed. By the driver: it is a hot path."""
    raw: Any = (await connection.get_raw_connection()).driver_connection
    try:
        return bool((await raw.execute(_PUT_DOWN, (receipt,))).rowcount)
    except psycopg.Error as error:
        raise DBAPIError(_PUT_DOWN, None, error) from error


async def _clear_receipts(connection: AsyncConnection) -> None:
    """Delete old receipts."""
    await connection.execute(delete(_RECEIPTS).where(_RECEIPTS.c.at < _OLD))


_SEES: Mapping[Mode, str] = {
    "plain": "AUTOCOMMIT",
    "view": "REPEATABLE READ",
    "alone": "SERIALIZABLE",
    "schema": "READ COMMITTED",
}


class PostgresDatabase(Database):
    """Opened by `open`; safe for several processes and machines at once."""

    shared = True

    def __init__(self, engine: AsyncEngine, where: str, busy_s: float) -> None:
        super().__init__(engine, where)
        self._busy_s = busy_s
        self._writes = itertools.count(1)
        self._modes = {mode: engine.execution_options(isolation_level=sees) for mode, sees in _SEES.items()}
        """Engines over one pool."""

    @classmethod
    async def open(cls, url: str, *, busy_s: float = BUSY_S) -> Self:
        """Connect and create missing tables; ConfigError for an unsuitable database."""
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):  # its text contains the URL, which may contain a password
            raise ConfigError(
                "store.url: not a database URL", remedy="postgresql://user@host:5432/database"
            ) from None
        parsed = parsed.set(drivername="postgresql+psycopg")
        engine = create_async_engine(
            parsed,
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_timeout=busy_s + 30,
            pool_pre_ping=True,  # detects a stale connection before the work starts
            hide_parameters=True,  # they contain signed transactions, which must not reach an error text
            use_native_hstore=False,
            connect_args=link(parsed.query),
        )

        def prepare(connection: psycopg.Connection[Any], _record: object) -> None:
            with closing(connection.cursor()) as cursor:
                cursor.execute(SESSION.encode(), (f"{max(1, int(busy_s * 1000))}ms",))
            connection.commit()

        event.listen(engine.sync_engine, "connect", prepare)
        database = cls(engine, _where(parsed), busy_s)
        try:
            await database._recorded("store.open", "schema", database._settle_version)
        except BaseException:
            await database.aclose()
            raise
        return database

    def insert(self, table: Table) -> postgresql.Insert:
        return postgresql.insert(table)

    async def _run(self, mode: Mode, work: Work[T]) -> T:
        if mode != "alone":
            return await self._insist(self._modes[mode], work)
        receipt = uuid4()
        answers: list[T] = []  # of the latest attempt that reached its commit: no other can be committed

        async def once(connection: AsyncConnection) -> T:
            first = not answers
            if not first and not await _put_down(connection, receipt):
                return answers[0]
            answers[:] = [await work(connection)]
            if first:  # last, because the snapshot begins with the first statement
                await _put_down(connection, receipt)
            return answers[0]

        answer = await self._insist(self._modes["alone"], once)
        if next(self._writes) % RECEIPTS_KEPT == 0:
            with suppress(FleetError):  # the write itself is recorded
                await self._insist(self._modes["plain"], _clear_receipts)
        return answer

    async def _settle_version(self, connection: AsyncConnection) -> None:
        await connection.execute(_ONE_AT_A_TIME)
        encoding = await connection.scalar(text("SELECT current_setting('server_encoding')"))
        if encoding != "UTF8":
            raise ConfigError(
                f"{self._where}: its encoding is {encoding}; the journal needs UTF8",
                remedy="create the database with ENCODING 'UTF8'",
            )
        await connection.run_sync(settle_version, self._where, alone=False)
        # create the table if missing, under a lock
        await connection.run_sync(_RECEIPTS.create, checkfirst=True)
        await _clear_receipts(connection)

    async def _insist(self, engine: AsyncEngine, work: Work[T]) -> T:
        """Start over while the failure may pass and time is left."""
        failures, doubt, began = 0, False, anyio.current_time()
        policy = replace(DATABASE, total_s=self._busy_s)
        while True:
            try:
                return await self._once(engine, work)
            except _Passing as failure:
                doubt = doubt or failure.doubt
                pause = policy.next_pause(failures, anyio.current_time() - began)
                if pause is None:
                    raise (self._doubt() if doubt else failure.error) from failure.__cause__
            await anyio.sleep(pause)
            failures += 1

    async def _once(self, engine: AsyncEngine, work: Work[T]) -> T:
        committing = False
        try:
            async with engine.connect() as connection:
                transaction = await connection.begin()
                done = await work(connection)  # an exception closes the connection, and so rolls back
                committing = True
                await transaction.commit()
                return done
        except PoolTimeout as error:
            raise TryAgain(f"{self._where}: every connection is busy", remedy="try again") from error
        except DBAPIError as error:
            raise self._failure(error, committing) from error

    def _failure(self, error: DBAPIError, committing: bool) -> BaseException:
        if error.orig is None:
            return error
        if committing and is_lost(error.orig):
            return _Passing(self._doubt(), doubt=True)
        found = translate(error.orig, self._where)
        return _Passing(found) if isinstance(found, TryAgain) else found

    def _doubt(self) -> TryAgain:
        return TryAgain(
            f"{self._where}: the connection ended during a commit; it is recorded or it is not",
            remedy="look before you repeat",
        )


class _Passing(Exception):
    """A retryable failure. Nothing was recorded, unless it is in `doubt`."""

    def __init__(self, error: FleetError, *, doubt: bool = False) -> None:
        super().__init__(str(error))
        self.error, self.doubt = error, doubt


def _where(url: URL) -> str:
    """The URL without user, password and options."""
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{url.host or url.query.get('host', '')}{port}/{url.database or ''}"
