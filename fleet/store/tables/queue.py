"""The queue: who is due, in which order, and who may start now; and what was due and does not run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from sqlalchemy import Executable, Integer, Select, bindparam, cast, delete, exists, func, select, update
from sqlalchemy import insert as plain_insert

from fleet.store.rows import NEWS, OPEN_RUNS, RoundsRow, RunRow, SkipRow
from fleet.store.sql.database import AnyRow, Connection
from fleet.store.sql.schema import FINDINGS, RUNS, SKIPS
from fleet.store.tables.base import TableGroup, plain
from fleet.store.tables.runs import run_row

KEPT_SKIPS = 10_000
UNENDED = ("queued", *OPEN_RUNS)
LOOK_BACK = 64
"""Ended runs of a persona that are looked at for how long it has been quiet."""


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
    """Made once, because making it every second is most of what an idle daemon does."""
    asked = RUNS.c.cancel != ""
    return (
        select(RUNS.c.persona, RUNS.c.state, asked, func.count())
        .where(RUNS.c.state.in_(UNENDED), RUNS.c.platform == platform)
        .group_by(RUNS.c.persona, RUNS.c.state, asked)
    )


class QueueTables(TableGroup):
    async def claim_next(
        self, platform: str, *, pid: int, pid_start: int, daemon: str = "", apart: Collection[str] = ()
    ) -> RunRow | None:
        """Take the next run that may start, in one statement: no persona runs twice at a time.

        Highest priority first, then the longest due. `apart` are personas that are busy in a way the
        journal does not show: a run of theirs is being cleaned up by this process.
        """
        asked = {"of_platform": platform, "apart": list(apart)}
        values = {"pid": pid, "pid_start": pid_start, "daemon": daemon, "started": self._now()}

        async def work(c: Connection) -> AnyRow | None:
            found: AnyRow | None = (await c.execute(_CLAIM, asked | values)).first()
            return found

        row = await self._db.write("run.claim", work)
        return run_row(row) if row is not None else None

    async def at_hand(self, platform: str) -> tuple[dict[str, int], bool]:
        """`waiting`, and whether the end of a run was asked for: all that an idle daemon looks at."""
        waiting: dict[str, int] = {}
        cancel = False
        found = await self._db.look(f"at hand: {platform}", _at_hand(platform))
        for persona, state, is_asked, count in found:
            cancel = cancel or bool(is_asked)
            if state == "queued":
                waiting[persona] = waiting.get(persona, 0) + count
        return waiting, cancel

    async def waiting(self, platform: str) -> dict[str, int]:
        """How many runs wait, by persona."""
        statement = (
            select(RUNS.c.persona, func.count())
            .where(RUNS.c.state == "queued", RUNS.c.platform == platform)
            .group_by(RUNS.c.persona)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def queued_keys(self, platform: str, persona: str) -> list[str]:
        """Keys of the runs of this persona that wait."""
        mine = (RUNS.c.persona == persona, RUNS.c.state == "queued", RUNS.c.platform == platform)
        statement = select(RUNS.c.key).where(*mine)
        return [row[0] for row in await self._db.rows(statement)]

    async def queued_by_persona(self, platform: str, personas: Collection[str]) -> dict[str, list[str]]:
        """`queued_keys` of several personas; of those with none it has no entry."""
        statement = select(RUNS.c.persona, RUNS.c.key).where(
            RUNS.c.persona.in_(personas), RUNS.c.state == "queued", RUNS.c.platform == platform
        )
        found: dict[str, list[str]] = {}
        for persona, key in await self._db.rows(statement):
            found.setdefault(persona, []).append(key)
        return found

    async def known_keys(self, keys: Collection[str]) -> set[str]:
        """Which of these firings are runs already."""
        words = {plain(key): key for key in keys}
        return {words[row[0]] for row in await self._db.rows(select(RUNS.c.key).where(RUNS.c.key.in_(words)))}

    async def known_key(self, key: str) -> bool:
        """Whether this firing is a run already."""
        return bool(await self.run_of(key))

    async def run_of(self, key: str) -> str:
        """The run that this firing became, "" when it is none."""
        rows = await self._db.rows(select(RUNS.c.run_id).where(RUNS.c.key == plain(key)))
        return str(rows[0][0]) if rows else ""

    async def ask_cancel(self, run_id: str, why: str) -> bool:
        """Ask for the end of a run, durably; whoever runs it looks. False when it has ended."""
        statement = (
            update(RUNS)
            .where(RUNS.c.run_id == run_id, RUNS.c.state != "ended")
            .values(cancel=plain(why) or "asked")
            .returning(RUNS.c.run_id)
        )
        return await self._db.write("run.cancel", lambda c: c.scalar(statement)) is not None

    async def cancels(self) -> list[RunRow]:
        """Runs without an outcome whose end was asked for."""
        statement = select(RUNS).where(RUNS.c.cancel != "", RUNS.c.state.in_(UNENDED))
        return [run_row(row) for row in await self._db.rows(statement)]

    async def skip(self, persona: str, key: str, reason: str) -> None:
        """Record that something was due and does not run; the latest 10,000 are kept."""
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
        statement = (
            select(SKIPS.c.persona, SKIPS.c.key, SKIPS.c.reason, SKIPS.c.at)
            .order_by(SKIPS.c.skip_id.desc())
            .limit(limit)
        )
        return [SkipRow(**row._mapping) for row in await self._db.rows(statement)]

    async def last_due(self) -> dict[str, str]:
        """When each persona was last due by a clock; its keys are `persona@2026-…`."""
        statement = (
            select(RUNS.c.persona, func.max(RUNS.c.due))
            .where(RUNS.c.key.like("%@2___-__-__T%"))
            .group_by(RUNS.c.persona)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def rounds(self, persona: str) -> RoundsRow:
        """What a continuous trigger continues from."""
        ended = (RUNS.c.persona == persona, RUNS.c.state == "ended")
        count = (await self._db.rows(select(func.count()).select_from(RUNS).where(*ended)))[0][0]
        found = exists().where(FINDINGS.c.run_id == RUNS.c.run_id, FINDINGS.c.state.in_(NEWS))
        statement = (
            select(RUNS.c.ended, cast(found, Integer), RUNS.c.outcome)
            .where(*ended)
            .order_by(RUNS.c.ended.desc(), RUNS.c.due.desc())
            .limit(LOOK_BACK)
        )
        last, quiet = "", 0
        for at, news, outcome in await self._db.rows(statement):
            last = last or at
            if news:
                break
            quiet += outcome == "done"  # any other looked at too little to say that all is quiet
        return RoundsRow(count, last, quiet)

    async def ages(self, platform: str) -> dict[str, str]:
        """Since when the oldest run of each state is in it: queued, running, settling; ISO."""
        since = func.min(RUNS.c.created)
        statement = (
            select(RUNS.c.state, since)
            .where(RUNS.c.state.in_(UNENDED), RUNS.c.platform == platform)
            .group_by(RUNS.c.state)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def outcomes(self) -> dict[str, int]:
        """How many runs ended how."""
        statement = (
            select(RUNS.c.outcome, func.count()).where(RUNS.c.state == "ended").group_by(RUNS.c.outcome)
        )
        return {row[0]: row[1] for row in await self._db.rows(statement)}
