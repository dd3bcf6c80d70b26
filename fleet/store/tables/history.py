"""Figures of earlier runs by metric: the baseline for "slower than usual"; and small facts by key."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from sqlalchemy import Subquery, func, insert, select, update

from fleet.store.rows import SampleRow
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import HISTORY, META, SAMPLES
from fleet.store.tables.base import TableGroup, plain

KEPT = 200
"""The latest notes that count."""
WINDOW = 20
"""Consecutive notes that make one median."""
ENOUGH = 5
"""Fewest notes for a baseline."""
LOOKS_KEPT = 40
"""The latest samples of a measure that count."""
MEASURES_KEPT = 120
"""The measures of a platform that count: those that were measured last."""
MAX_VALUES = 100
"""Most quantiles of one sample."""


class History(TableGroup):
    async def note(self, metric: str, value: float) -> None:
        """Keep one measurement; ValueError unless it is a finite number."""
        if not math.isfinite(value):
            raise ValueError(f"{metric}: {value} is not a measurement")
        row = {"metric": plain(metric), "value": float(value), "at": self._now()}
        await self._db.write("history.note", lambda c: c.execute(insert(HISTORY).values(row)))

    async def history(self) -> dict[str, float]:
        """The `baseline` of each metric that has `ENOUGH` notes."""
        age = func.row_number().over(partition_by=HISTORY.c.metric, order_by=HISTORY.c.note_id.desc())
        ranked = select(HISTORY.c.metric, HISTORY.c.value, age.label("age")).subquery()
        statement = select(ranked.c.metric, ranked.c.value).where(ranked.c.age <= KEPT)
        values: dict[str, list[float]] = {}
        for metric, value in await self._db.rows(statement.order_by(ranked.c.metric, ranked.c.age.desc())):
            values.setdefault(metric, []).append(value)
        return {name: baseline(notes) for name, notes in values.items() if len(notes) >= ENOUGH}

    async def keep_sample(self, platform: str, row: SampleRow) -> None:
        """Keep what one look measured; ValueError unless it is at most MAX_VALUES finite numbers each."""
        for values in (row.own, row.control):
            if len(values) > MAX_VALUES or not all(map(math.isfinite, values)):
                raise ValueError(f"{row.measure}: not a sample of at most {MAX_VALUES} finite numbers")
        found = {
            "platform": plain(platform),
            "measure": plain(row.measure),
            "build": plain(row.build),
            "data": {"own": row.own, "control": row.control},
            "at": self._now(),
        }
        await self._db.write("history.sample", lambda c: c.execute(insert(SAMPLES).values(found)))

    async def past(self, platform: str) -> dict[str, list[SampleRow]]:
        """The samples of a platform that count, by measure, oldest first."""
        ranked, table = ranked_samples(), SAMPLES.c
        statement = (
            select(table.measure, table.data, table.build, table.at)
            .join_from(SAMPLES, ranked, table.sample_id == ranked.c.sample_id)
            .where(
                table.platform == plain(platform),
                ranked.c.age <= LOOKS_KEPT,
                ranked.c.measure_age <= MEASURES_KEPT,
            )
            .order_by(table.sample_id)
        )
        found: dict[str, list[SampleRow]] = {}
        for measure, data, build, at in await self._db.rows(statement):
            kept = {name: tuple(values) for name, values in data.items()}
            row = SampleRow(measure=measure, build=build, at=at, **kept)
            found.setdefault(measure, []).append(row)
        return found

    async def noted(self) -> dict[str, int]:
        """How many notes each metric has; one with fewer than `ENOUGH` is not in `history`."""
        statement = select(HISTORY.c.metric, func.count()).group_by(HISTORY.c.metric)
        return {row[0]: row[1] for row in await self._db.rows(statement)}


def ranked_samples() -> Subquery:
    """Each sample with its age within its measure, and its measure's age within the platform; from 1."""
    of_measure = (SAMPLES.c.platform, SAMPLES.c.measure)
    last = func.max(SAMPLES.c.sample_id).over(partition_by=of_measure)
    aged = select(
        SAMPLES.c.sample_id,
        SAMPLES.c.platform,
        func.row_number().over(partition_by=of_measure, order_by=SAMPLES.c.sample_id.desc()).label("age"),
        last.label("last"),
    ).subquery()
    rank = func.dense_rank().over(partition_by=aged.c.platform, order_by=aged.c.last.desc())
    return select(aged.c.sample_id, aged.c.age, rank.label("measure_age")).subquery()


def baseline(notes: Sequence[float]) -> float:
    """The lowest median of `WINDOW` notes in a row (of all notes, where there are fewer).

    The median of the latest notes alone follows a slow regression upward, each step of which is within
    bounds. The lowest one stays where the platform was at its best, until `KEPT` notes later. It is taken
    over `WINDOW` notes, not over `ENOUGH`: where figures scatter, the lowest of 196 medians of five lies
    far below what is usual (simulated, log-normal with sigma 0.5: at 0.52 of it; with twenty, at 0.76).
    """
    starts = range(max(len(notes) - WINDOW, 0) + 1)
    return min(statistics.median(notes[start : start + WINDOW]) for start in starts)


class KnownFacts(TableGroup):
    async def get(self, key: str) -> str | None:
        """A small fact by key; None if unset."""
        rows = await self._db.rows(select(META.c.value).where(META.c.key == key))
        return rows[0][0] if rows else None

    async def facts(self, prefix: str) -> dict[str, str]:
        """The small facts whose key has this prefix, by key."""
        statement = select(META.c.key, META.c.value).where(META.c.key.startswith(prefix, autoescape=True))
        return {row[0]: row[1] for row in await self._db.rows(statement.order_by(META.c.key))}

    async def swap(self, key: str, old: str | None, value: str) -> bool:
        """`put`, but only over `old` (None: nothing yet); False when another process changed it meanwhile."""
        row = {"key": plain(key), "value": plain(value)}
        if old is None:
            new = self._db.insert(META).values(row).on_conflict_do_nothing().returning(META.c.key)
            return await self._db.write("meta.swap", lambda c: c.scalar(new)) is not None
        over = update(META).where(META.c.key == row["key"], META.c.value == old).values(value=row["value"])
        return await self._db.write("meta.swap", lambda c: c.scalar(over.returning(META.c.key))) is not None

    async def put(self, key: str, value: str, *, run: str = "") -> None:
        """Keep a small fact; ValueError for the journal's own key, LostRun for a `run` that a peer owns."""
        if key == "schema":
            raise ValueError("the schema version is the journal's own")
        row = {"key": plain(key), "value": plain(value)}
        statement = self._db.insert(META).values(row)
        statement = statement.on_conflict_do_update(index_elements=[META.c.key], set_={"value": row["value"]})

        async def work(c: Connection) -> None:
            await self._fence(c, run)
            await c.execute(statement)

        await self._db.write("meta.put", work)
