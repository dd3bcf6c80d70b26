"""Proposals of fixes: a slot is taken in the transaction that counts them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, insert, select, update

from fleet.errors import UsageError
from fleet.store.rows import OPEN_PROPOSALS, PROPOSAL_MOVES, ProposalRow, ProposalState
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import PROPOSALS, RUNS
from fleet.store.tables.base import TableGroup, plain

_CHANGES = frozenset({"base", "head", "ref", "why"})


class Proposals(TableGroup):
    async def begin_proposal(self, row: ProposalRow, *, per_item: int, most: int) -> str:
        """Record a proposal as begun, and return ""; or why there is no slot for it. Durable."""
        now = self._now()
        values = asdict(row) | {"state": "begun", "created": now, "updated": now}
        live = select(func.count()).select_from(PROPOSALS).where(PROPOSALS.c.state.in_(OPEN_PROPOSALS))
        live = live.where(PROPOSALS.c.platform == plain(row.platform))

        async def work(c: Connection) -> str:
            await self._fence(c, row.proposal_id)
            known = select(PROPOSALS).where(PROPOSALS.c.proposal_id == plain(row.proposal_id))
            if (await c.execute(known)).one_or_none() is not None:
                return f"run {row.proposal_id} has made its proposal"
            same: int = await c.scalar(live.where(PROPOSALS.c.item == plain(row.item)))
            if same >= per_item:
                return f"{same} of {per_item} proposals of this item are open"
            every: int = await c.scalar(live)
            if every >= most:
                return f"{every} of {most} proposals are open"
            await c.execute(insert(PROPOSALS), values)
            return ""

        return await self._db.write("proposal.begin", work)

    async def move_proposal(
        self, proposal_id: str, state: ProposalState, data: dict[str, Any] | None = None, **changes: str
    ) -> None:
        """Record where a proposal is now; `data` is merged, `changes` are base, head, ref or why.

        ValueError for a move that `PROPOSAL_MOVES` lacks, UsageError for an unknown one, LostRun when a peer
        owns its run. The proposal of a run that has ended is of every daemon; a move that is not
        possible any more, since a peer has settled it, is LostRun too.
        """
        if not changes.keys() <= _CHANGES:
            raise ValueError(f"not of a proposal: {sorted(changes.keys() - _CHANGES)}")
        mine = PROPOSALS.c.proposal_id == plain(proposal_id)

        async def work(c: Connection) -> None:
            if await c.scalar(select(RUNS.c.state).where(RUNS.c.run_id == plain(proposal_id))) != "ended":
                await self._fence(c, proposal_id)
            row = (await c.execute(select(PROPOSALS).where(mine))).one_or_none()
            if row is None:
                raise UsageError(f"no proposal {proposal_id} in the journal")
            if state != row.state and state not in PROPOSAL_MOVES[row.state]:
                await self._fence(c, proposal_id)
                raise ValueError(f"proposal {proposal_id} is {row.state}: it cannot become {state}")
            values = {"state": state, "data": row.data | (data or {}), "updated": self._now()}
            await c.execute(update(PROPOSALS).where(mine).values(values | changes))

        await self._db.write(f"proposal.{state}", work)

    async def proposals(
        self, platform: str, *, item: str = "", states: Collection[ProposalState] = ()
    ) -> list[ProposalRow]:
        """Proposals of a platform, the oldest first; of one item, or in these states, if named."""
        statement = select(PROPOSALS).where(PROPOSALS.c.platform == plain(platform))
        statement = statement.order_by(PROPOSALS.c.created, PROPOSALS.c.proposal_id)
        if item:
            statement = statement.where(PROPOSALS.c.item == plain(item))
        if states:
            statement = statement.where(PROPOSALS.c.state.in_(states))
        return await self._all(ProposalRow, statement)
