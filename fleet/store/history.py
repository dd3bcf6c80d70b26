"""Figures of earlier runs by metric: what "slower than usual" is measured against; and small facts by key."""

from __future__ import annotations

import math
import statistics

from sqlalchemy import func, insert, select

from fleet.store.database import insert as upsert
from fleet.store.part import Part, plain
from fleet.store.schema import HISTORY, META

WINDOW = 20
"""The latest notes that count."""
ENOUGH = 5
"""Fewer notes than this say nothing."""


class History(Part):
    async def note(self, metric: str, value: float) -> None:
        """Keep one measurement; ValueError unless it is a finite number."""
        if not math.isfinite(value):
            raise ValueError(f"{metric}: {value} is not a measurement")
        async with self._db.write("history.note") as c:
            row = {"metric": plain(metric), "value": float(value), "at": self._now()}
            await c.execute(insert(HISTORY).values(row))

    async def history(self) -> dict[str, float]:
        """Median of the last `WINDOW` notes of each metric that has `ENOUGH`."""
        age = func.row_number().over(partition_by=HISTORY.c.metric, order_by=HISTORY.c.note_id.desc())
        ranked = select(HISTORY.c.metric, HISTORY.c.value, age.label("age")).subquery()
        statement = select(ranked.c.metric, ranked.c.value).where(ranked.c.age <= WINDOW)
        values: dict[str, list[float]] = {}
        async with self._db.read() as c:
            for metric, value in await c.execute(statement):
                values.setdefault(metric, []).append(value)
        return {name: statistics.median(notes) for name, notes in values.items() if len(notes) >= ENOUGH}


class Facts(Part):
    async def get(self, key: str) -> str | None:
        """A small fact by key; None when nobody put it."""
        async with self._db.read() as c:
            value: str | None = await c.scalar(select(META.c.value).where(META.c.key == key))
        return value

    async def put(self, key: str, value: str) -> None:
        """Keep a small fact; ValueError for the journal's own key."""
        if key == "schema":
            raise ValueError("the schema version is the journal's own")
        row = {"key": plain(key), "value": plain(value)}
        statement = upsert(META).values(row)
        statement = statement.on_conflict_do_update(index_elements=[META.c.key], set_={"value": row["value"]})
        async with self._db.write("meta.put") as c:
            await c.execute(statement)
