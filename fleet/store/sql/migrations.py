"""The version of the schema: an empty database becomes a journal, any other must be a known one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import BigInteger, Column, case, cast, func, insert, inspect, literal, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateColumn

from fleet.errors import ConfigError
from fleet.store.sql.schema import (
    BUDGET,
    DAYS,
    DECISIONS,
    EFFECTS,
    EPOCHS,
    ITEMS,
    LOG,
    META,
    METADATA,
    PROPOSALS,
    RESERVES,
    RUNS,
    SAMPLES,
    SKIPS,
    Words,
)

_ELSEWHERE = "name another state directory or database"


def settle_version(connection: Connection, where: str, *, alone: bool) -> None:
    """Make the tables, or refuse foreign and newer ones with ConfigError, under a lock.

    `alone`: a table that is not ours makes the database foreign. A server's database may also contain a
    queue's.
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


def missing(connection: Connection) -> list[str]:
    """Missing tables and columns of this version."""
    there = inspect(connection)
    names = set(there.get_table_names())
    found = [f"no table {name}" for name in METADATA.tables if name not in names]
    for name in names & METADATA.tables.keys():
        columns = {column["name"] for column in there.get_columns(name)}
        found += [
            f"no column {name}.{one.name}" for one in METADATA.tables[name].c if one.name not in columns
        ]
    return sorted(found)


def _queue(connection: Connection) -> None:
    """Version 2: priorities, due times, cancel requests, and skips."""
    for column in (RUNS.c.priority, RUNS.c.due, RUNS.c.cancel):
        _add(connection, column)
    for index in RUNS.indexes:
        index.create(connection, checkfirst=True)
    SKIPS.create(connection)


def _days(connection: Connection) -> None:
    """Version 3: spending by day, filled from the runs' spending so far; and reservations."""
    if connection.dialect.name == "postgresql":  # version 2 once made them narrower, with another collation
        connection.exec_driver_sql("ALTER TABLE runs ALTER COLUMN priority TYPE BIGINT")
        for name in ("due", "cancel"):
            connection.exec_driver_sql(f'ALTER TABLE runs ALTER COLUMN {name} TYPE TEXT COLLATE "C"')
    DAYS.create(connection)
    RESERVES.create(connection)
    began = func.substr(case((RUNS.c.started != "", RUNS.c.started), else_=RUNS.c.created), 1, 10)
    for owner in (RUNS.c.persona, literal("", Words)):
        day, who = began.label("day"), owner.label("owner")
        each = select(day, who, BUDGET.c.unit, BUDGET.c.spent).join_from(BUDGET, RUNS).subquery()
        keys = (each.c.day, each.c.owner, each.c.unit)
        rows = select(*keys, cast(func.sum(each.c.spent), BigInteger)).group_by(*keys)
        connection.execute(insert(DAYS).from_select(["day", "owner", "unit", "spent"], rows))


def _daemon(connection: Connection) -> None:
    """Version 4: the daemon that owns a run."""
    _add(connection, RUNS.c.daemon)


def _kinds(connection: Connection) -> None:
    """Version 5: indices that find the remains of runs without reading all history."""
    for index in EFFECTS.indexes:
        index.create(connection, checkfirst=True)


def _samples(connection: Connection) -> None:
    """Version 6: samples of measurements."""
    SAMPLES.create(connection)


def _discovered(connection: Connection) -> None:
    """Version 7: whether a run discovered new behaviour."""
    _add(connection, RUNS.c.discovered)


def _items(connection: Connection) -> None:
    """Version 8: decisions, items, and which log an epoch belongs to."""
    _add(connection, EPOCHS.c.log)
    _add(connection, EPOCHS.c.why)
    DECISIONS.create(connection)
    ITEMS.create(connection)


def _proposals(connection: Connection) -> None:
    """Version 9: proposals of fixes."""
    PROPOSALS.create(connection)


def _heads(connection: Connection) -> None:
    """Version 10: an index of the entries' sources."""
    for index in LOG.indexes:
        index.create(connection, checkfirst=True)


def _add(connection: Connection, column: Column[Any]) -> None:
    words = CreateColumn(column).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {words}")


_MIGRATIONS: dict[int, Callable[[Connection], None]] = {
    2: _queue,
    3: _days,
    4: _daemon,
    5: _kinds,
    6: _samples,
    7: _discovered,
    8: _items,
    9: _proposals,
    10: _heads,
}
"""The steps that migrate a journal from the previous version."""

SCHEMA_VERSION = max(_MIGRATIONS)
"""Written to `meta`; a journal with a higher one is refused, because this program would misread it."""
