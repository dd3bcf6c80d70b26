"""What the journal may forget about an ended run: its details. Its row and its findings are kept."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select

from fleet.store.rows import NEWS, SEALED
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import BUDGET, DAYS, EFFECTS, FINDINGS, HISTORY, META, RESERVES, RUNS, SAMPLES
from fleet.store.tables.base import TableGroup
from fleet.store.tables.history import KEPT, LOOKS_KEPT, MEASURES_KEPT, ranked_samples

CHUNK = 500
"""Runs asked for in one statement."""


class Retention(TableGroup):
    async def over(self, run_ids: Collection[str]) -> dict[str, str]:
        """Which of these runs are completely over, each with its end (ISO).

        They have an outcome, no open effect, all names and keys returned, and no finding that is or may still
        come on the log: its evidence is kept as long as the finding.
        """
        found: dict[str, str] = {}
        left = iter(run_ids)
        while chunk := list(islice(left, CHUNK)):
            statement = select(RUNS.c.run_id, RUNS.c.ended).where(RUNS.c.run_id.in_(chunk), *_over())
            found |= {row[0]: row[1] for row in await self._db.rows(statement)}
        return found

    async def forget(self, run_id: str) -> bool:
        """Drop a run's effects and spending; False, changing nothing, unless it is `over` now."""
        mine = select(RUNS.c.run_id).where(RUNS.c.run_id == run_id, *_over())

        async def work(c: Connection) -> bool:
            if await c.scalar(mine) is None:
                return False
            for table in (EFFECTS, BUDGET, RESERVES):
                await c.execute(delete(table).where(table.c.run_id == run_id))
            await c.execute(delete(META).where(META.c.key == f"{SEALED}{run_id}"))
            return True

        return await self._db.write("run.forget", work)

    async def forget_before(self, day: str) -> None:
        """Drop spending of days before this one (`2026-11-22`), and figures that no longer count."""
        age = func.row_number().over(partition_by=HISTORY.c.metric, order_by=HISTORY.c.note_id.desc())
        ranked = select(HISTORY.c.note_id, age.label("age")).subquery()
        old = select(ranked.c.note_id).where(ranked.c.age > KEPT)
        samples = ranked_samples()
        stale = or_(samples.c.age > LOOKS_KEPT, samples.c.measure_age > MEASURES_KEPT)
        past = select(samples.c.sample_id).where(stale)

        async def work(c: Connection) -> None:
            await c.execute(delete(DAYS).where(DAYS.c.day < day))
            await c.execute(delete(HISTORY).where(HISTORY.c.note_id.in_(old)))
            await c.execute(delete(SAMPLES).where(SAMPLES.c.sample_id.in_(past)))

        await self._db.write("day.forget", work)


def _over() -> tuple[ColumnElement[bool], ...]:
    held = and_(EFFECTS.c.kind.in_(("name", "key")), EFFECTS.c.state == "done")
    owed = exists().where(EFFECTS.c.run_id == RUNS.c.run_id, or_(EFFECTS.c.state == "open", held))
    states: tuple[Any, ...] = ("raised", "posting", *NEWS)
    news = exists().where(FINDINGS.c.run_id == RUNS.c.run_id, FINDINGS.c.state.in_(states))
    return RUNS.c.state == "ended", ~owed, ~news
