"""Runs: one permanent row per firing, claimed once, ended once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Update, bindparam, or_, select, update

from fleet.errors import UsageError
from fleet.store.rows import OPEN_RUNS, NewRun, RunRow, RunState
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import RUNS, pack
from fleet.store.tables.base import TableGroup, names_of, plain, row_of


class Runs(TableGroup):
    async def trigger(self, run: NewRun) -> bool:
        """Queue a run; False when this key (or id) was ever queued before: a firing is one run."""
        return bool(await self.trigger_all([run]))

    async def trigger_all(
        self, runs: Sequence[NewRun], also: Callable[[Any, set[str]], Awaitable[None]] | None = None
    ) -> set[str]:
        """`trigger` of several in one transaction; the ids of those that are new.

        `also` is done in the same transaction, with the ids, if any is new.
        """
        if not runs:
            return set()
        now = self._now()
        rows = [_queued(run, now) for run in runs]
        statement = self._db.insert(RUNS).on_conflict_do_nothing().returning(RUNS.c.run_id)

        async def work(c: Connection) -> set[str]:
            ids = set(await self._db.insert_many(c, statement, rows))
            if ids and also is not None:
                await also(c, ids)
            return ids

        return await self._db.write("run.trigger", work)

    async def claim(self, run_id: str, *, pid: int, pid_start: int, daemon: str = "", rung: str = "") -> bool:
        """Queued to running, by compare-and-set: exactly one caller gets True, ever.

        `rung` is where the dial stands at this moment; "" leaves what is there.
        """
        values = {"pid": pid, "pid_start": pid_start, "daemon": daemon, "started": self._now()}
        values |= {"of_run": run_id, "state": "running"} | ({"rung": plain(rung)} if rung else {})
        return await self._db.write("run.claim", lambda c: c.scalar(_from(("queued",)), values)) is not None

    async def adopt(self, run_id: str, *, daemon: str) -> bool:
        """Take over the open run of a dead process; if it is alive after all, it will notice.

        `pid` and `pid_start` still name the process that began it.
        """
        statement = (
            update(RUNS)
            .where(RUNS.c.run_id == run_id, RUNS.c.state.in_(OPEN_RUNS))
            .values(daemon=daemon)
            .returning(RUNS.c.run_id)
        )
        return await self._db.write("run.adopt", lambda c: c.scalar(statement)) is not None

    async def start_settling(self, run_id: str) -> bool:
        """Running to settling: from now on only looks and clean-up. True when it is settling now.

        LostRun when a peer owns it, or has ended it.
        """

        async def work(c: Connection) -> bool:
            await self._fence(c, run_id)
            return await c.scalar(_from(OPEN_RUNS), {"of_run": run_id, "state": "settling"}) is not None

        return await self._db.write("run.settle", work)

    async def discover(self, run_id: str) -> None:
        """Record that a run met new behaviour; LostRun when a peer owns it."""

        async def work(c: Connection) -> None:
            await self._fence(c, run_id)
            await c.execute(update(RUNS).where(RUNS.c.run_id == run_id).values(discovered=1))

        await self._db.write("run.discover", work)

    async def finish(self, run_id: str, outcome: str, detail: str = "", *, ended: str = "") -> bool:
        """Record the one outcome of a run, which `ended` (ISO) then, or now.

        False, changing nothing, when it has one already, or when another daemon owns it.
        """
        values = {
            "of_run": run_id,
            "state": "ended",
            "outcome": plain(outcome),
            "detail": plain(detail),
            "ended": plain(ended) or self._now(),
        }
        statement = _from(("queued", *OPEN_RUNS))
        if self._keeper is not None:
            statement, values = _END_OWN, values | {"of_keeper": self._keeper}
        return await self._db.write("run.finish", lambda c: c.scalar(statement, values)) is not None

    async def tend(self, run_id: str) -> None:
        """Take ownership of an ended run to clean up after it; the previous owner loses its writes."""
        statement = (
            update(RUNS).where(RUNS.c.run_id == run_id, RUNS.c.state == "ended").values(daemon=self._keeper)
        )
        if self._db.shared and self._keeper is not None:
            await self._db.write("run.tend", lambda c: c.execute(statement))

    async def run(self, run_id: str) -> RunRow:
        """One run; UsageError when the journal does not know it."""
        rows = await self._db.rows(select(RUNS).where(RUNS.c.run_id == run_id))
        if not rows:
            raise UsageError(f"no run named {plain(run_id)!r}", remedy="`fleet runs list` shows them")
        return row_of(RunRow, rows[0])

    async def open_runs(self) -> list[RunRow]:
        """Runs that started and have no outcome yet, oldest first."""
        statement = select(RUNS).where(RUNS.c.state.in_(OPEN_RUNS)).order_by(RUNS.c.created, RUNS.c.run_id)
        return [row_of(RunRow, row) for row in await self._db.rows(statement)]

    async def queued_runs(self) -> list[RunRow]:
        """Unclaimed runs, oldest first."""
        statement = select(RUNS).where(RUNS.c.state == "queued").order_by(RUNS.c.created, RUNS.c.run_id)
        return [row_of(RunRow, row) for row in await self._db.rows(statement)]

    async def runs(self, limit: int = 50) -> list[RunRow]:
        """The latest runs, newest first."""
        statement = select(RUNS).order_by(RUNS.c.created.desc(), RUNS.c.run_id.desc()).limit(limit)
        return [row_of(RunRow, row) for row in await self._db.rows(statement)]


@cache
def _from(states: tuple[RunState, ...]) -> Update:
    """Change a run that is in one of these states; built once per combination, because that is slow."""
    mine = (RUNS.c.run_id == bindparam("of_run"), RUNS.c.state.in_(states))
    return update(RUNS).where(*mine).returning(RUNS.c.run_id)


_END_OWN = _from(("queued", *OPEN_RUNS)).where(
    or_(RUNS.c.state == "queued", RUNS.c.daemon == bindparam("of_keeper"))
)


def _queued(run: NewRun, now: str) -> dict[str, Any]:
    """The columns of a waiting run, in plain values: SQLAlchemy converts none of so many."""
    row = {
        name: plain(value) if isinstance(value := getattr(run, name), str) else value
        for name in names_of(NewRun)
    }
    return row | {"budget": pack(run.budget), "due": row["due"] or now, "state": "queued", "created": now}
