"""Effects: recorded as intents before they are tried, resolved after a look."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from fleet.errors import UsageError
from fleet.store.rows import EFFECT_MOVES, EffectKind, EffectRow, EffectState
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import EFFECTS, RUNS
from fleet.store.tables.base import TableGroup, lost, plain, row_of

_MINE = EFFECTS.c.effect_id == bindparam("of_effect")
_INTEND, _ONE, _CHANGE = (
    insert(EFFECTS).returning(EFFECTS.c.effect_id),
    select(EFFECTS).where(_MINE),
    update(EFFECTS).where(_MINE),
)
_STILL = select(EFFECTS.c.state, EFFECTS.c.run_id, RUNS.c.daemon).outerjoin(RUNS)
"""Made once: SQLAlchemy takes longer to make a statement than the database to answer it."""


class Effects(TableGroup):
    async def intend(self, run_id: str, kind: EffectKind, ref: str, data: dict[str, Any]) -> int:
        """Record an effect before it is tried, and return its id; durable when this returns.

        `run_id` is "" for an operator's action outside any run. UsageError when the run is unknown, LostRun
        when a peer owns it.
        """
        row = {
            "run_id": run_id or None,
            "kind": kind,
            "ref": plain(ref),
            "state": "open",
            "data": data,
            "at": self._now(),
        }

        async def work(c: Connection) -> int:
            await self._fence(c, run_id)
            effect_id: int = await c.scalar(_INTEND, row)
            return effect_id

        return await self._db.write(f"effect.intend.{kind}", work)

    async def still_open(self, effect_id: int) -> None:
        """LostRun once a peer owns the run of this effect, or has resolved it."""
        row = (await self._db.rows(_STILL.where(EFFECTS.c.effect_id == effect_id)))[0]
        kept = not row.run_id or self._keeper is None or row.daemon == self._keeper
        if row.state != "open" or not kept:
            raise lost(row.run_id or "")

    async def resolve(self, effect_id: int, state: EffectState, data: dict[str, Any] | None = None) -> None:
        """Record the result of an effect; `data` is merged over the intent's.

        The same state again is accepted (recovery looks twice). ValueError for a move missing from
        `EFFECT_MOVES`, UsageError for an unknown id, LostRun when a peer owns its run.
        """

        async def work(c: Connection) -> None:
            row = (await c.execute(_ONE, {"of_effect": effect_id})).one_or_none()
            if row is None:
                raise UsageError(f"no effect {effect_id} in the journal")
            await self._fence(c, row.run_id)
            if state != row.state and state not in EFFECT_MOVES[row.state]:
                raise ValueError(f"effect {effect_id} is {row.state}: it cannot become {state}")
            values = {
                "of_effect": effect_id,
                "state": state,
                "data": row.data | (data or {}),
                "resolved": self._now(),
            }
            await c.execute(_CHANGE, values)

        await self._db.write("effect.resolve", work)

    async def effects(
        self,
        run_id: str | None,
        kinds: Collection[EffectKind] = (),
        states: Collection[EffectState] = (),
        *,
        since: str = "",
    ) -> list[EffectRow]:
        """Effects in the order they were intended; None means all runs, "" those outside any run.

        `since` (ISO): only those that were resolved then or later.
        """
        statement = select(EFFECTS).order_by(EFFECTS.c.effect_id)
        if run_id is not None:
            statement = statement.where(
                EFFECTS.c.run_id.is_(None) if not run_id else EFFECTS.c.run_id == run_id
            )
        if kinds:
            statement = statement.where(EFFECTS.c.kind.in_(kinds))
        if states:
            statement = statement.where(EFFECTS.c.state.in_(states))
        if since:
            statement = statement.where(EFFECTS.c.resolved >= since)
        rows = await self._db.rows(statement)
        return [row_of(EffectRow, row, run_id=row.run_id or "") for row in rows]
