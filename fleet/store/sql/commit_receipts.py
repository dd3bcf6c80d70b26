"""Receipts: how a write on PostgreSQL learns what became of a COMMIT that was never answered.

Each transaction puts down a receipt of its own; a write that is tried again puts down the same one, before
anything else. The unique key decides: it waits for an earlier attempt that the server is still at work on,
and refuses once that one was committed. A receipt is never read by a journal transaction, so it brings no
two of them into conflict. `pg_xact_status` would need no table, but a server that crashed may give the
number of a lost transaction to another one.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import Column, DateTime, MetaData, Table, Uuid, delete, func, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

_RECEIPTS = Table(
    "receipts",
    MetaData(),  # not of the journal's own tables: its schema and version are the same on every database
    Column("receipt", Uuid, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
_PUT_DOWN = "INSERT INTO receipts (receipt) VALUES (%s) ON CONFLICT DO NOTHING"
EACH = 250
"""Old receipts are cleared away after so many writes."""
_OLD = text("now() - interval '1 hour'")  # far longer than any write is tried again


async def make(connection: AsyncConnection) -> None:
    """The table, where it is missing; nobody else makes it meanwhile."""
    await connection.run_sync(_RECEIPTS.create, checkfirst=True)
    await clear(connection)


async def put_down(connection: AsyncConnection, receipt: UUID) -> bool:
    """False when an earlier attempt with this receipt is committed. By the driver: each write pays for it."""
    raw: Any = (await connection.get_raw_connection()).driver_connection
    try:
        return bool((await raw.execute(_PUT_DOWN, (receipt,))).rowcount)
    except psycopg.Error as error:
        raise DBAPIError(_PUT_DOWN, None, error) from error


async def clear(connection: AsyncConnection) -> None:
    """Forget receipts that nobody will ask for."""
    await connection.execute(delete(_RECEIPTS).where(_RECEIPTS.c.at < _OLD))
