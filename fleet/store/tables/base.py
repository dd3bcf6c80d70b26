"""The base of every part of the journal: the database, the clock, and rows by the names of their columns."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import Select, bindparam, select

from fleet.clock import Clock, iso
from fleet.errors import LostRun
from fleet.store.sql.database import AnyRow, Connection, Database
from fleet.store.sql.schema import RUNS, plain
from fleet.store.tables.units import INT_MAX

__all__ = ["INT_MAX", "TableGroup", "lost", "plain", "row_of"]

T = TypeVar("T")
_KEEPER = (
    select(RUNS.c.daemon, RUNS.c.state)
    .where(RUNS.c.run_id == bindparam("of_run"))
    .with_for_update(read=True)  # a takeover waits until work begun under it is recorded
)


class TableGroup:
    """One group of tables with the methods that read and write them; `Journal` combines the groups.

    `keeper` is the daemon that writes here (`RunRow.daemon`); None is a person, who owns no run and is not
    fenced.
    """

    def __init__(self, database: Database, clock: Clock, keeper: str | None = None) -> None:
        self._db = database
        self._clock = clock
        self._keeper = keeper

    async def _fence(self, c: Connection, run_id: str | None) -> None:
        """Within a write: LostRun unless this daemon owns the run; no takeover happens before the write ends.

        A waiting run has no owner yet, and effects outside any run are not fenced.
        """
        if self._keeper is None or not run_id:
            return
        row = (await c.execute(_KEEPER, {"of_run": run_id})).one_or_none()
        if row is not None and row.state != "queued" and row.daemon != self._keeper:
            raise lost(run_id)

    async def _all(self, kind: type[T], statement: Select[*tuple[Any, ...]]) -> list[T]:
        """The rows of a query as dataclasses."""
        if not (rows := await self._db.rows(statement)):
            return []
        columns, own = list(map(str, rows[0]._mapping)), names_of(kind)
        places = [(name, at) for at, name in enumerate(columns) if name in own]  # once, not for each row
        return [kind(**{name: row[at] for name, at in places}) for row in rows]

    def _now(self) -> str:
        return iso(self._clock.now())


def lost(run_id: str) -> LostRun:
    """The error for every write of a daemon that no longer owns this run."""
    return LostRun(
        f"a peer presumed this process dead and now owns run {plain(run_id)}",
        remedy="nothing: the peer settles it",
    )


def names_of(kind: type[Any]) -> set[str]:
    """The fields of a dataclass."""
    return {one.name for one in fields(kind)}


def row_of(kind: type[T], row: AnyRow, **other: object) -> T:
    """A row of a table as its dataclass: its fields by the names of columns, and `other` ones."""
    columns = dict(row._mapping)
    return kind(**{name: columns[name] for name in names_of(kind) & columns.keys()} | other)
