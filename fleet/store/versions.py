"""The version of the schema: an empty database becomes a journal, anything else must be one that is known."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import insert, inspect, select, update
from sqlalchemy.engine import Connection

from fleet.errors import ConfigError
from fleet.store.schema import META, METADATA, RUNS, SCHEMA_VERSION, SKIPS

_ELSEWHERE = "name another state directory or database"


def settle_version(connection: Connection, where: str, *, alone: bool) -> None:
    """Make the tables, or refuse what is foreign or newer with ConfigError; nobody else does so meanwhile.

    `alone`: a table that is not ours makes the database foreign. A server's database may hold a queue's too.
    """
    there = set(inspect(connection).get_table_names())
    there = there if alone else there & METADATA.tables.keys()
    if not there:
        METADATA.create_all(connection, checkfirst=False)
        connection.execute(insert(META).values(key="schema", value=str(SCHEMA_VERSION)))
        return
    found = None
    if META.name in there:
        found = connection.execute(select(META.c.value).where(META.c.key == "schema")).scalar()
    if found is None or not found.isdecimal():
        raise ConfigError(f"{where}: a database, but not a journal of this fleet", remedy=_ELSEWHERE)
    if int(found) > SCHEMA_VERSION:
        raise ConfigError(
            f"{where}: written by a newer version (schema {found}; this program knows {SCHEMA_VERSION})",
            remedy=f"run the newer fleet, or {_ELSEWHERE}",
        )
    for version in range(int(found) + 1, SCHEMA_VERSION + 1):
        _MIGRATIONS[version](connection)
        connection.execute(update(META).where(META.c.key == "schema").values(value=str(version)))


def _queue(connection: Connection) -> None:
    """Version 2: priorities, when a run was due, requests to cancel one, and what was skipped."""
    for column in (
        "priority INTEGER NOT NULL DEFAULT '0'",
        "due TEXT NOT NULL DEFAULT ''",
        "cancel TEXT NOT NULL DEFAULT ''",
    ):
        connection.exec_driver_sql(f"ALTER TABLE runs ADD COLUMN {column}")
    for index in RUNS.indexes:
        index.create(connection, checkfirst=True)
    SKIPS.create(connection)


_MIGRATIONS: dict[int, Callable[[Connection], None]] = {2: _queue}
"""What makes a journal of the version before into one of this version."""
