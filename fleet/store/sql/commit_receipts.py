"""Receipts: how a write on PostgreSQL learns the result of an unanswered COMMIT.

Each transaction inserts its own receipt; a retried write first inserts the same one. The unique key decides:
it waits for an earlier attempt that the server is still processing, and refuses once that one was committed.
No journal transaction reads a receipt, so receipts cause no conflicts. `pg_xact_status` would need no table,
but a crashed server may give the number of a lost transaction to another one.
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
    MetaData(),  # not among the journal's own tables: its schema and version are the same on every database
    Column("receipt", Uuid, primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
_PUT_DOWN = "INSERT INTO receipts (receipt) VALUES (%s) ON CONFLICT DO NOTHING"
EACH = 250
"""Writes between two clean-ups of old receipts."""
_OLD = text("now() - interval '1 hour'")  # far longer than any write is retried


async def make(connection: AsyncConnection) -> None:
    """Create the table if missing, under a lock."""
    await connection.run_sync(_RECEIPTS.create, checkfirst=True)
    await clear(connection)


async def put_down(connection: AsyncConnection, receipt: UUID) -> bool:
    """False when an earlier attempt with this receipt is committed. By the driver: it is a hot path."""
    raw: Any = (await connection.get_raw_connection()).driver_connection
    try:
        return bool((await raw.execute(_PUT_DOWN, (receipt,))).rowcount)
    except psycopg.Error as error:
        raise DBAPIError(_PUT_DOWN, None, error) from error


async def clear(connection: AsyncConnection) -> None:
    """Delete old receipts."""
    await connection.execute(delete(_RECEIPTS).where(_RECEIPTS.c.at < _OLD))
