"""The mirror of the log on chain: append-only, in epochs, hash-chained."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, insert, select

from fleet.errors import ChainError
from fleet.store.rows import LogEntry, MirroredEntry
from fleet.store.sql.database import AnyRow, Connection
from fleet.store.sql.schema import EPOCHS, LOG
from fleet.store.tables.base import INT_MAX, TableGroup, plain


class Mirror(TableGroup):
    async def mirror(self, epoch: int, start_index: int, entries: Sequence[LogEntry]) -> int:
        """Append entries read from `start_index` on, and return how many were new.

        Repeated entries are accepted. ValueError when entries are missing in between, ChainError
        when the epoch is over or an entry differs from what was mirrored: then the log was rewritten.
        """

        async def work(c: Connection) -> int:
            now, upto = await _cursor(c)
            if epoch != now:
                raise ChainError(f"epoch {epoch} of the log is over; it is {now} now")
            if start_index > upto or start_index < 0:
                raise ValueError(f"entries {upto} to {start_index - 1} of the log are missing")
            known = await _digests(c, epoch, start_index - 1)
            digest = known.get(start_index - 1, "")
            fresh = []
            for index, entry in enumerate(entries, start_index):
                row = _values(epoch, index, entry)
                digest = row["digest"] = _chain(digest, row)
                if known.get(index, digest) != digest:
                    raise ChainError(f"entry {index} of the log differs from the one read before")
                if index >= upto:
                    fresh.append(row)
            if fresh:
                await c.execute(insert(LOG), fresh)
            return len(fresh)

        return await self._db.write("log.mirror", work)

    async def mirror_cursor(self) -> tuple[int, int]:
        """(epoch, index of the next entry to read)."""
        return await self._db.read(_cursor)

    async def new_epoch(self) -> int:
        """The log on chain was cleared: indices restart at 0; the old mirror is kept."""

        async def work(c: Connection) -> int:
            epoch = (await _cursor(c))[0] + 1
            await c.execute(insert(EPOCHS).values(epoch=epoch, since=self._now()))
            return epoch

        return await self._db.write("log.epoch", work)

    async def entries(self, epoch: int | None = None) -> list[MirroredEntry]:
        """Mirrored entries of one epoch, or of all, in order."""
        statement = select(LOG).order_by(LOG.c.epoch, LOG.c.index)
        if epoch is not None:
            statement = statement.where(LOG.c.epoch == epoch)
        return [_row(row) for row in await self._db.rows(statement)]


async def _cursor(c: Connection) -> tuple[int, int]:
    epoch = await c.scalar(select(func.max(EPOCHS.c.epoch))) or 0
    last = await c.scalar(select(func.max(LOG.c.index)).where(LOG.c.epoch == epoch))
    return epoch, 0 if last is None else last + 1


async def _digests(c: Connection, epoch: int, start: int) -> dict[int, str]:
    statement = select(LOG.c.index, LOG.c.digest).where(LOG.c.epoch == epoch, LOG.c.index >= start)
    return {row[0]: row[1] for row in await c.execute(statement)}


def _values(epoch: int, index: int, entry: LogEntry) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "index": index,
        "sender": plain(entry.sender),
        "timestamp": max(0, min(entry.timestamp, INT_MAX)),
        "text": entry.text.encode("utf-8", "surrogatepass"),
    }


def _chain(previous: str, row: dict[str, Any]) -> str:
    head = f"{previous}\n{row['epoch']}\n{row['index']}\n{row['sender']}\n{row['timestamp']}\n"
    return hashlib.sha256(head.encode() + row["text"]).hexdigest()


def _row(row: AnyRow) -> MirroredEntry:
    values = dict(row._mapping)
    values["text"] = values["text"].decode("utf-8", "surrogatepass")
    return MirroredEntry(**values)
