"""The queue: due runs, their order, which may start now; and skipped firings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from sqlalchemy import Executable, Integer, Select, bindparam, cast, delete, exists, func, select, update
from sqlalchemy import insert as plain_insert

from fleet.store.rows import CLOSING, NEWS, OPEN_RUNS, TRIAL, RoundsRow, RunRow, SkipRow
from fleet.store.sql.database import AnyRow, Connection
from fleet.store.sql.schema import FINDINGS, RUNS, SKIPS
from fleet.store.tables.base import TableGroup, plain, row_of

KEPT_SKIPS = 10_000
UNENDED = ("queued", *OPEN_RUNS)
LOOK_BACK = 64
"""Ended runs of a persona that count towards its quiet streak."""


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


class QueueTables(TableGroup):
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
        """`waiting`, and whether a cancel was requested: all that an idle daemon polls."""
        waiting: dict[str, int] = {}
        cancel = False
        found = await self._db.look(f"at hand: {platform}", _at_hand(platform))
        for persona, state, is_asked, count in found:
            cancel = cancel or bool(is_asked)
            if state == "queued":
                waiting[persona] = waiting.get(persona, 0) + count
        return waiting, cancel

    async def waiting(self, platform: str) -> dict[str, int]:
        """Number of waiting runs by persona."""
        statement = (
            select(RUNS.c.persona, func.count())
            .where(RUNS.c.state == "queued", RUNS.c.platform == platform)
            .group_by(RUNS.c.persona)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def queued_keys(self, platform: str, persona: str) -> list[str]:
        """Keys of this persona's waiting runs."""
        mine = (RUNS.c.persona == persona, RUNS.c.state == "queued", RUNS.c.platform == platform)
        statement = select(RUNS.c.key).where(*mine)
        return [row[0] for row in await self._db.rows(statement)]

    async def queued_by_persona(self, platform: str, personas: Collection[str]) -> dict[str, list[str]]:
        """`queued_keys` of several personas; personas with none have no entry."""
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

    async def known_key(self, key: str) -> bool:
        """Whether this firing already has a run."""
        return bool(await self.run_of(key))

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
        return [row_of(RunRow, row) for row in await self._db.rows(statement)]

    async def skip(self, persona: str, key: str, reason: str) -> None:
        """Record a skipped firing; the latest 10,000 are kept."""
        row = {"persona": plain(persona), "key": plain(key), "reason": plain(reason), "at": self._now()}
        statement = plain_insert(SKIPS).values(row).returning(SKIPS.c.skip_id)
        old = delete(SKIPS)
        number = int(await self._db.write("skip", lambda c: c.scalar(statement)) or 0)
        if number % 1000 == 0:
            await self._db.write(
                "skip.forget", lambda c: c.execute(old.where(SKIPS.c.skip_id <= number - KEPT_SKIPS))
            )

    async def skip_all(self, skips: Sequence[tuple[str, str, str]]) -> None:
        """`skip` of several, each its persona, key and reason, in one transaction."""
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
        return [row_of(SkipRow, row) for row in await self._db.rows(statement)]

    async def last_due(self) -> dict[str, str]:
        """When each persona was last due by a clock; its keys are `persona@2026-…`."""
        statement = (
            select(RUNS.c.persona, func.max(RUNS.c.due))
            .where(RUNS.c.key.like("%@2___-__-__T%"))
            .group_by(RUNS.c.persona)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def rounds(self, persona: str) -> RoundsRow:
        """The state that a continuous trigger resumes from."""
        ended = (RUNS.c.persona == persona, RUNS.c.state == "ended", RUNS.c.trigger != TRIAL)
        count = (await self._db.rows(select(func.count()).select_from(RUNS).where(*ended)))[0][0]
        found = exists().where(
            FINDINGS.c.run_id == RUNS.c.run_id, FINDINGS.c.state.in_(NEWS), FINDINGS.c.probe != CLOSING
        )
        statement = (
            select(RUNS.c.ended, cast(found, Integer) + RUNS.c.discovered, RUNS.c.outcome)
            .where(*ended)
            .order_by(RUNS.c.ended.desc(), RUNS.c.due.desc())
            .limit(LOOK_BACK)
        )
        last, quiet = "", 0
        for at, news, outcome in await self._db.rows(statement):
            last = last or at
            if news:
                break
            quiet += outcome == "done"  # any other outcome looked at too little to count as quiet
        return RoundsRow(count, last, quiet)

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
