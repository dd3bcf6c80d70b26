"""The epochs of the mirrored logs: what began each, and where a reorganisation replaced entries.

A journal holds several logs, each with epochs of its own; numbers are the journal's. The first epoch, 0, may
be without a row: a journal did not name its log before version 8.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from fleet.errors import ChainError
from fleet.store.rows import EpochRow, RewindRow
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import EPOCHS, LOG, META
from fleet.store.tables.base import TableGroup, plain

REWINDS = "log.rewinds"
REWINDS_KEPT = 50
"""Reorganisations that a journal remembers."""


class Epochs(TableGroup):
    async def epochs(self) -> list[EpochRow]:
        """All epochs of all logs, in the order in which they began."""
        size = func.count(LOG.c.index)
        counts = select(LOG.c.epoch, size.label("entries")).group_by(LOG.c.epoch)

        async def work(c: Connection) -> list[EpochRow]:
            held = {row[0]: row[1] for row in await c.execute(counts)}
            rows = [
                EpochRow(**row._mapping, entries=held.get(row.epoch, 0))
                for row in await c.execute(select(EPOCHS).order_by(EPOCHS.c.epoch))
            ]
            if 0 in held and not any(row.epoch == 0 for row in rows):
                rows.insert(0, EpochRow(epoch=0, since="", log="", why="", entries=held[0]))
            return rows

        return await self._db.read(work)

    async def rewinds(self) -> list[RewindRow]:
        """The last reorganisations, oldest first."""
        rows = await self._db.rows(select(META.c.value).where(META.c.key == REWINDS))
        return [RewindRow(**one) for one in json.loads(rows[0][0])] if rows else []

    async def new_epoch(self, log: str = "", *, why: str = "cleared", after: int | None = None) -> int:
        """Begin an epoch of this log, unless another process has ended epoch `after` already."""

        async def work(c: Connection) -> int:
            now = await newest_of(c, log)
            if after is not None and now is not None and now != after:
                return now
            return await self._begin(c, (await newest_of(c, None) or 0) + 1, log, why)

        return await self._db.write("log.epoch", work)

    async def epoch_before(self, epoch: int) -> int | None:
        """The epoch of the same log before this one, None for its first."""

        async def work(c: Connection) -> int | None:
            log = await c.scalar(select(EPOCHS.c.log).where(EPOCHS.c.epoch == epoch)) or ""
            rows = await c.scalars(select(EPOCHS.c.epoch).where(EPOCHS.c.log == log, EPOCHS.c.epoch < epoch))
            bare = await c.scalar(select(EPOCHS.c.epoch).where(EPOCHS.c.epoch == 0)) is None
            return max([*rows, *([0] if bare and epoch and not log else [])], default=None)

        return await self._db.read(work)

    async def first_epoch(self, log: str, *, adopt: bool) -> int:
        """The epoch of a log that is followed for the first time.

        `adopt`: the entries without a log's name are its own; else it begins behind all others.
        """

        async def work(c: Connection) -> int:
            if (now := await newest_of(c, log)) is not None:
                return now
            last = await newest_of(c, None)
            if not adopt:
                return await self._begin(c, (last or 0) + 1, log, "another log")
            if await c.scalar(select(EPOCHS.c.epoch).where(EPOCHS.c.epoch == 0)) is None:
                await self._begin(c, 0, "", "first")
            await c.execute(update(EPOCHS).where(EPOCHS.c.log == "").values(log=plain(log)))
            return await newest_of(c, log) or 0

        return await self._db.write("log.epoch", work)

    async def undo_clear(self, epoch: int, *, tip: str) -> int:
        """Drop an epoch whose clear was undone by a reorganisation; return the one before, which goes on.

        ChainError when there is none, or when the last digest of `epoch` is not `tip` any more.
        """

        async def work(c: Connection) -> int:
            log = await c.scalar(select(EPOCHS.c.log).where(EPOCHS.c.epoch == epoch)) or ""
            last = select(LOG.c.digest).where(LOG.c.epoch == epoch).order_by(LOG.c.index.desc()).limit(1)
            if (await c.scalar(last) or "") != tip or await newest_of(c, log) != epoch:
                raise ChainError("another process has mirrored the log meanwhile")
            gone = (await c.execute(delete(LOG).where(LOG.c.epoch == epoch))).rowcount
            await c.execute(delete(EPOCHS).where(EPOCHS.c.epoch == epoch))
            before = await newest_of(c, log)
            if before is None:
                raise ChainError(f"no epoch of the log comes before {epoch}")
            await self._note_rewind(c, before, 0, gone=gone, new=0, back=True)
            return before

        return await self._db.write("log.epoch", work)

    async def _begin(self, c: Connection, epoch: int, log: str, why: str) -> int:
        await c.execute(insert(EPOCHS).values(epoch=epoch, since=self._now(), log=plain(log), why=why))
        return epoch

    async def _note_rewind(self, c: Connection, epoch: int, index: int, **facts: Any) -> None:
        log = await c.scalar(select(EPOCHS.c.log).where(EPOCHS.c.epoch == epoch)) or ""
        row = RewindRow(at=self._now(), log=log, epoch=epoch, index=index, **facts)
        known = await c.scalar(select(META.c.value).where(META.c.key == REWINDS))
        rows = [*json.loads(known or "[]"), asdict(row)][-REWINDS_KEPT:]
        put = self._db.insert(META).values(key=REWINDS, value=json.dumps(rows))
        put = put.on_conflict_do_update(index_elements=[META.c.key], set_={"value": put.excluded.value})
        await c.execute(put)


async def newest_of(c: Connection, log: str | None = None, *, epoch: int | None = None) -> int | None:
    """The newest epoch of one log, of the log that `epoch` belongs to, or of all (`log` None).

    None when there is none. Without rows, epoch 0 belongs to the log without a name.
    """
    if epoch is not None:
        log = await c.scalar(select(EPOCHS.c.log).where(EPOCHS.c.epoch == epoch)) or ""
    newest = select(func.max(EPOCHS.c.epoch))
    found = await c.scalar(newest if log is None else newest.where(EPOCHS.c.log == plain(log)))
    if found is None and log in ("", None):
        zero = await c.scalar(select(EPOCHS.c.log).where(EPOCHS.c.epoch == 0))
        return 0 if zero is None else None
    return None if found is None else int(found)
