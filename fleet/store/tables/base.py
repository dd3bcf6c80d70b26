"""What every part of the journal stands on: the database, the clock, and plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, select

from fleet.clock import Clock, iso
from fleet.errors import LostRun
from fleet.store.sql.database import Connection, Database
from fleet.store.sql.schema import RUNS
from fleet.store.sql.text import plain
from fleet.store.tables.units import INT_MAX

__all__ = ["INT_MAX", "TableGroup", "lost", "pack", "plain", "unpack"]

_ENCODER = json.JSONEncoder(allow_nan=False, sort_keys=True)
_KEEPER = (
    select(RUNS.c.daemon, RUNS.c.state)
    .where(RUNS.c.run_id == bindparam("of_run"))
    .with_for_update(read=True)  # whoever takes the run over waits until what was begun under it is recorded
)


class TableGroup:
    """One group of tables with the methods that read and write them; `Journal` puts the groups together.

    `keeper` is the daemon that writes here (`RunRow.daemon`); None is a person, who keeps no run and is not
    fenced.
    """

    def __init__(self, database: Database, clock: Clock, keeper: str | None = None) -> None:
        self._db = database
        self._clock = clock
        self._keeper = keeper

    async def _fence(self, c: Connection, run_id: str | None) -> None:
        """Within a write: LostRun unless this daemon keeps the run; nobody takes it before the write ends.

        A run that waits is nobody's yet, and what belongs to no run is not fenced.
        """
        if self._keeper is None or not run_id:
            return
        row = (await c.execute(_KEEPER, {"of_run": run_id})).one_or_none()
        if row is not None and row.state != "queued" and row.daemon != self._keeper:
            raise lost(run_id)

    def _now(self) -> str:
        return iso(self._clock.now())


def lost(run_id: str) -> LostRun:
    """What every write of a daemon meets that does not keep this run any more."""
    return LostRun(
        f"a peer took this process for dead, and keeps run {plain(run_id)}",
        remedy="nothing: the peer settles it",
    )


def pack(data: Mapping[str, Any]) -> str:
    """A JSON document in ASCII; ValueError for NaN and infinities, TypeError for what JSON cannot hold."""
    return _ENCODER.encode(data)


def unpack(text: str) -> dict[str, Any]:
    """What `pack` wrote."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise TypeError("a journal document is an object")
    return data
