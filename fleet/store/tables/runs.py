"""Runs: one permanent row per firing, claimed once, ended once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cache
from itertools import takewhile
from typing import Any

from sqlalchemy import (
    Executable,
    Integer,
    Select,
    Update,
    bindparam,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy import insert as plain_insert

from fleet.errors import UsageError
from fleet.store.rows import (
    BLIND,
    CLOSING,
    NEWS,
    OPEN_RUNS,
    TRIAL,
    NewRun,
    RoundsRow,
    RunRow,
    RunState,
    SkipRow,
)
from fleet.store.sql.database import AnyRow, Connection
from fleet.store.sql.schema import FINDINGS, RUNS, SKIPS, pack
from fleet.store.tables.base import TableGroup, names_of, plain, row_of

KEPT_SKIPS = 10_000
UNENDED = ("queued", *OPEN_RUNS)
LOOK_BACK = 64
"""Ended runs of a persona that count towards its quiet streak."""


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
        return await self._all(RunRow, statement)

    async def queued_runs(self) -> list[RunRow]:
        """Unclaimed runs, oldest first."""
        statement = select(RUNS).where(RUNS.c.state == "queued").order_by(RUNS.c.created, RUNS.c.run_id)
        return await self._all(RunRow, statement)

    async def first_run(self, platform: str) -> str:
        """When the first run was queued (ISO); "" without one."""
        statement = select(func.min(RUNS.c.created)).where(RUNS.c.platform == platform)
        return str(await self._db.read(lambda c: c.scalar(statement)) or "")

    async def runs(self, limit: int = 50) -> list[RunRow]:
        """The latest runs, newest first."""
        statement = select(RUNS).order_by(RUNS.c.created.desc(), RUNS.c.run_id.desc()).limit(limit)
        return await self._all(RunRow, statement)

    async def claim_next(
        self,
        platform: str,
        *,
        pid: int,
        pid_start: int,
        daemon: str = "",
        rung: str = "",
        apart: Collection[str] = (),
    ) -> RunRow | None:
        """Take the next run that may start, in one statement: a persona has at most one run at a time.

        Highest priority first, then the longest due. `apart` are personas that are busy in a way that the
        journal does not show: this process is cleaning up one of their runs. `rung` as in `claim`.
        """
        asked = {"of_platform": platform, "apart": list(apart)}
        values = {"pid": pid, "pid_start": pid_start, "daemon": daemon, "started": self._now()}
        values |= {"rung": rung} if rung else {}

        async def work(c: Connection) -> AnyRow | None:
            found: AnyRow | None = (await c.execute(_CLAIM, asked | values)).first()
            return found

        row = await self._db.write("run.claim", work)
        return row_of(RunRow, row) if row is not None else None

    async def at_hand(self, platform: str) -> tuple[dict[str, int], bool]:
        """Waiting runs by persona, and whether a cancel was requested: all that an idle daemon polls."""
        waiting: dict[str, int] = {}
        cancel = False
        found = await self._db.look(f"at hand: {platform}", _at_hand(platform))
        for persona, state, is_asked, count in found:
            cancel = cancel or bool(is_asked)
            if state == "queued":
                waiting[persona] = waiting.get(persona, 0) + count
        return waiting, cancel

    async def queued_by_persona(self, platform: str, personas: Collection[str]) -> dict[str, list[str]]:
        """Keys of the waiting runs of these personas; personas with none have no entry."""
        statement = select(RUNS.c.persona, RUNS.c.key).where(
            RUNS.c.persona.in_(personas), RUNS.c.state == "queued", RUNS.c.platform == platform
        )
        found: dict[str, list[str]] = {}
        for persona, key in await self._db.rows(statement):
            found.setdefault(persona, []).append(key)
        return found

    async def known_keys(self, keys: Collection[str]) -> set[str]:
        """Which of these firings already have runs."""
        words = {plain(key): key for key in keys}
        return {words[row[0]] for row in await self._db.rows(select(RUNS.c.key).where(RUNS.c.key.in_(words)))}

    async def run_of(self, key: str) -> str:
        """The run of this firing, "" if none."""
        rows = await self._db.rows(select(RUNS.c.run_id).where(RUNS.c.key == plain(key)))
        return str(rows[0][0]) if rows else ""

    async def ask_cancel(self, run_id: str, why: str) -> bool:
        """Request a run's end, durably; its executor polls for it. False when it has ended."""
        statement = (
            update(RUNS)
            .where(RUNS.c.run_id == run_id, RUNS.c.state != "ended")
            .values(cancel=plain(why) or "asked")
            .returning(RUNS.c.run_id)
        )
        return await self._db.write("run.cancel", lambda c: c.scalar(statement)) is not None

    async def cancels(self) -> list[RunRow]:
        """Runs without an outcome whose cancel was requested."""
        statement = select(RUNS).where(RUNS.c.cancel != "", RUNS.c.state.in_(UNENDED))
        return await self._all(RunRow, statement)

    async def skip(self, skips: Sequence[tuple[str, str, str]]) -> None:
        """Record skipped firings, each its persona, key and reason; the latest 10,000 are kept."""
        at = self._now()
        rows = [{"persona": p, "key": k, "reason": plain(why), "at": at} for p, k, why in skips]
        latest = select(func.max(SKIPS.c.skip_id)).scalar_subquery()

        async def work(c: Connection) -> None:
            await c.execute(plain_insert(SKIPS), rows)
            await c.execute(delete(SKIPS).where(SKIPS.c.skip_id <= latest - KEPT_SKIPS))

        if rows:
            await self._db.write("skip", work)

    async def skips(self, limit: int = 50) -> list[SkipRow]:
        """The latest skips, newest first."""
        statement = select(SKIPS).order_by(SKIPS.c.skip_id.desc()).limit(limit)
        return await self._all(SkipRow, statement)

    async def last_due(self) -> dict[str, str]:
        """When each persona was last due by a clock; its keys are `persona@2026-…`."""
        statement = (
            select(RUNS.c.persona, func.max(RUNS.c.due))
            .where(RUNS.c.key.like("%@2___-__-__T%"))
            .group_by(RUNS.c.persona)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def rounds(self, persona: str, since: str = "") -> RoundsRow:
        """The state that a continuous trigger resumes from; `blind`: of those that ended since `since`."""
        ended = (RUNS.c.persona == persona, RUNS.c.state == "ended", RUNS.c.trigger != TRIAL)
        count = (await self._db.rows(select(func.count()).select_from(RUNS).where(*ended)))[0][0]
        found = exists().where(
            FINDINGS.c.run_id == RUNS.c.run_id, FINDINGS.c.state.in_(NEWS), FINDINGS.c.probe != CLOSING
        )
        statement = (
            select(RUNS.c.ended, cast(found, Integer) + RUNS.c.discovered, RUNS.c.outcome, RUNS.c.detail)
            .where(*ended)
            .order_by(RUNS.c.ended.desc(), RUNS.c.due.desc())
            .limit(LOOK_BACK)
        )
        rows = [tuple(row) for row in await self._db.rows(statement)]
        dull = list(takewhile(lambda row: not row[1], rows))
        quiet = sum(outcome == "done" for _, _, outcome, _ in dull)
        blind = len(list(takewhile(lambda row: row[2] == BLIND and row[0] >= since, dull)))
        last, why = (rows[0][0], rows[0][3]) if rows else ("", "")
        return RoundsRow(count, last, quiet, blind, why)

    async def ages(self, platform: str) -> dict[str, str]:
        """When the oldest run in each state entered it: queued, running, settling; ISO."""
        since = func.min(RUNS.c.created)
        statement = (
            select(RUNS.c.state, since)
            .where(RUNS.c.state.in_(UNENDED), RUNS.c.platform == platform)
            .group_by(RUNS.c.state)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def outcomes(self, since: str = "") -> dict[str, int]:
        """Number of runs by outcome, of those that ended at `since` (ISO) or later."""
        ended = (RUNS.c.state == "ended", RUNS.c.ended >= since)
        statement = select(RUNS.c.outcome, func.count()).where(*ended).group_by(RUNS.c.outcome)
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def last_ended(self, platform: str, outcome: str = "") -> list[RunRow]:
        """The last ended run of each persona, no trial; with `outcome`, the last one that ended so."""
        where = [RUNS.c.platform == platform, RUNS.c.state == "ended", RUNS.c.trigger != TRIAL]
        where += [RUNS.c.outcome == outcome] if outcome else []
        last = (
            select(RUNS.c.persona, func.max(RUNS.c.ended).label("at"))
            .where(*where)
            .group_by(RUNS.c.persona)
            .subquery()
        )
        same = (RUNS.c.persona == last.c.persona) & (RUNS.c.ended == last.c.at)
        statement = select(RUNS).join(last, same).where(*where).order_by(RUNS.c.persona, RUNS.c.created)
        return list({row.persona: row_of(RunRow, row) for row in await self._db.rows(statement)}.values())


@cache
def _from(states: tuple[RunState, ...]) -> Update:
    """Change a run that is in one of these states; built once per combination, because that is slow."""
    mine = (RUNS.c.run_id == bindparam("of_run"), RUNS.c.state.in_(states))
    return update(RUNS).where(*mine).returning(RUNS.c.run_id)


_END_OWN = _from(("queued", *OPEN_RUNS)).where(
    or_(RUNS.c.state == "queued", RUNS.c.daemon == bindparam("of_keeper"))
)


def _claim() -> Executable:
    other = RUNS.alias("other")
    busy = exists().where(other.c.persona == RUNS.c.persona, other.c.state == "running")
    first = (
        select(RUNS.c.run_id)
        .where(
            RUNS.c.state == "queued",
            RUNS.c.platform == bindparam("of_platform"),
            RUNS.c.cancel == "",
            RUNS.c.persona.not_in(bindparam("apart", expanding=True)),
            ~busy,
        )
        .order_by(RUNS.c.priority.desc(), RUNS.c.due, RUNS.c.created, RUNS.c.key)
        .limit(1)
        .scalar_subquery()
    )
    mine = update(RUNS).where(RUNS.c.run_id == first, RUNS.c.state == "queued")
    return mine.values(state="running").returning(RUNS)


_CLAIM = _claim()


@cache
def _at_hand(platform: str) -> Select[tuple[str, str, bool, int]]:
    """Built once: building it every second would be most of an idle daemon's work."""
    asked = RUNS.c.cancel != ""
    return (
        select(RUNS.c.persona, RUNS.c.state, asked, func.count())
        .where(RUNS.c.state.in_(UNENDED), RUNS.c.platform == platform)
        .group_by(RUNS.c.persona, RUNS.c.state, asked)
    )


def _queued(run: NewRun, now: str) -> dict[str, Any]:
    """The columns of a waiting run, in plain values: they are many, and SQLAlchemy converts none."""
    row = {
        name: plain(value) if isinstance(value := getattr(run, name), str) else value
        for name in names_of(NewRun)
    }
    return row | {"budget": pack(run.budget), "due": row["due"] or now, "state": "queued", "created": now}
