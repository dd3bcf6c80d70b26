"""What persons decided about items, and the items as the last triage pass left them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Select, bindparam, delete, insert, select, update

from fleet.store.rows import QUEUED, DecisionRow, ItemRow, MirroredEntry
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import DECISIONS, HEAD, ITEMS, LOG, LOG_HEAD
from fleet.store.tables.base import TableGroup, names_of, plain, row_of

_IN_DATA = names_of(DecisionRow) - set(DECISIONS.c.keys())
"""Fields of a decision without a column of their own: those that are set are in `data`."""
_OF_ITEM = names_of(ItemRow) - set(ITEMS.c.keys())


class Items(TableGroup):
    async def add_decision(self, decision: DecisionRow) -> bool:
        """Append a decision; False if one of this name is known.

        Then only `entry` may change: to an index on the log, or from -1 to QUEUED.
        """
        fields = asdict(decision)
        row = {key: value for key, value in fields.items() if key not in _IN_DATA}
        row["data"] = {key: fields[key] for key in _IN_DATA if fields[key]}
        made = self._db.insert(DECISIONS).values(row).on_conflict_do_nothing()
        made = made.returning(DECISIONS.c.decision_id)
        known = update(DECISIONS).where(DECISIONS.c.name == decision.name).values(entry=decision.entry)
        if decision.entry == QUEUED:
            known = known.where(DECISIONS.c.entry == -1)

        async def work(c: Connection) -> bool:
            if await c.scalar(made) is not None:
                return True
            if decision.entry != -1:
                await c.execute(known)
            return False

        return await self._db.write("decision.add", work)

    async def decisions(self, platform: str) -> list[DecisionRow]:
        """Every decision about the items of a platform, in the order in which they were recorded."""
        statement = (
            select(DECISIONS).where(DECISIONS.c.platform == plain(platform)).order_by(DECISIONS.c.decision_id)
        )
        rows = await self._db.rows(statement)
        return [row_of(DecisionRow, row, **row.data) for row in rows]

    async def record_entries(self, source: str) -> list[MirroredEntry]:
        """The mirrored entries, of any sender and epoch, that say they are from this source."""
        found = [dict(row._mapping) for row in await self._db.rows(said_by(source))]
        return [MirroredEntry(**row | {"text": row["text"].decode("utf-8", "replace")}) for row in found]

    async def put_items(self, platform: str, items: Sequence[ItemRow]) -> None:
        """Replace the items of a platform, in one transaction; a stranger's repro is left out.

        Only what differs is written: of a long list most items stay as they are.
        """
        now, platform = self._now(), plain(platform)
        rows = {plain(item.fingerprint): _item(platform, item, item.at or now) for item in items}
        there = select(ITEMS.c.fingerprint, ITEMS.c.state, ITEMS.c.data).where(ITEMS.c.platform == platform)
        gone = delete(ITEMS).where(ITEMS.c.platform == platform, ITEMS.c.fingerprint == bindparam("gone"))

        async def work(c: Connection) -> None:
            new, old = dict(rows), []
            for name, state, data in await c.execute(there):
                row = new.pop(name, None)
                if row is None or (row["state"], row["data"]) != (state, data):
                    old.append({"gone": name})
                    if row is not None:
                        new[name] = row
            if old:
                await c.execute(gone, old)
            if new:
                await c.execute(insert(ITEMS), list(new.values()))

        await self._db.write("items.put", work)

    async def items(self, platform: str, states: Collection[str] = ()) -> list[ItemRow]:
        """The items of a platform by fingerprint, of these states only, if any are named."""
        statement = select(ITEMS).where(ITEMS.c.platform == plain(platform)).order_by(ITEMS.c.fingerprint)
        if states:
            statement = statement.where(ITEMS.c.state.in_(states))
        rows = await self._db.rows(statement)
        return [row_of(ItemRow, row, **row.data | {"names": tuple(row.data["names"])}) for row in rows]


def said_by(source: str) -> Select[*tuple[Any, ...]]:
    """The entries that say they are from this source; the first condition has an index."""
    head = f"qa/v1 source={source} ".encode()
    found = select(LOG).where(head[:HEAD] <= LOG_HEAD, head[:HEAD] + b"\xff" > LOG_HEAD)
    found = found.where(LOG.c.text >= head, LOG.c.text < head + b"\xff")
    return found.order_by(LOG.c.epoch, LOG.c.index)


def _item(platform: str, item: ItemRow, at: str) -> dict[str, Any]:
    data = {name: getattr(item, name) for name in _OF_ITEM} | {"names": list(item.names)}
    if not item.trusted:
        data["repro"] = ""
    state = plain(item.state)
    return {"platform": platform, "fingerprint": item.fingerprint, "state": state, "data": data, "at": at}
