"""The mirror of the logs: entries by epoch and index, hash-chained; and what began each epoch.

Rows are appended; only a reorganisation of the chain replaces some, in one transaction, and is recorded. A
journal holds several logs, each with epochs of its own; numbers are the journal's. The first epoch, 0, may be
without a row: a journal did not name its log before version 8.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from sqlalchemy import Select, delete, func, insert, select, update

from fleet.errors import ChainError
from fleet.store.rows import EpochRow, LogRecord, MirroredEntry, RawEntry, RewindRow
from fleet.store.sql.database import AnyRow, Connection
from fleet.store.sql.schema import EPOCHS, LOG, META
from fleet.store.tables.base import INT_MAX, TableGroup, plain

REWINDS = "log.rewinds"
REWINDS_KEPT = 50
"""Reorganisations that a journal remembers."""

CHUNK = 5_000
"""Entries of one read of `mirror_chunks`: about 3 MB of usual ones."""

_LogRow: TypeAlias = tuple[int, int, str, int, bytes, str]
"""The columns of LOG, in their order."""


class Mirror(TableGroup):
    async def mirror(self, epoch: int, start_index: int, entries: Sequence[LogRecord]) -> int:
        """Append entries read from `start_index` on, and return how many were new.

        Repeated entries are accepted. ValueError when entries are missing in between, ChainError
        when the epoch is over or an entry differs from what was mirrored: then the log was rewritten.
        """

        async def work(c: Connection) -> int:
            upto = await _upto(c, epoch)
            if start_index > upto or start_index < 0:
                raise ValueError(f"entries {upto} to {start_index - 1} of the log are missing")
            known = await _digests(c, epoch, start_index - 1)
            rows = _rows(epoch, start_index, entries, known.get(start_index - 1, ""))
            new = upto - start_index
            for _, index, *_, digest in rows[:new]:
                if known[index] != digest:
                    raise ChainError(f"entry {index} of the log differs from the one read before")
            return await self._append(c, rows[new:])

        return await self._db.write("log.mirror", work)

    async def rewind(self, epoch: int, index: int, entries: Sequence[LogRecord], *, tip: str) -> int:
        """Replace the entries of an epoch from `index` on, in one transaction, and record that.

        Returns how many are new. `tip` is the digest of the last entry when the difference was found:
        ChainError when it is another one by now.
        """

        async def work(c: Connection) -> int:
            upto = await _upto(c, epoch)
            known = await _digests(c, epoch, min(index, upto) - 1)
            if index > upto or known.get(upto - 1, "") != tip:
                raise ChainError("another process has mirrored the log meanwhile")
            await c.execute(delete(LOG).where(LOG.c.epoch == epoch, LOG.c.index >= index))
            rows = _rows(epoch, index, entries, known.get(index - 1, ""))
            await self._note_rewind(c, epoch, index, gone=upto - index, new=len(rows))
            return await self._append(c, rows)

        return await self._db.write("log.rewind", work)

    async def mirror_cursor(self) -> tuple[int, int]:
        """(epoch, index of the next entry to read) of the epoch that began last, of whatever log."""

        async def work(c: Connection) -> tuple[int, int]:
            epoch = await newest_of(c, None) or 0
            return epoch, await _next(c, epoch)

        return await self._db.read(work)

    async def mirror_of(self, log: str) -> tuple[int, int, str] | None:
        """(epoch, next index, digest of the last entry) of one log; None when it was never followed."""

        async def work(c: Connection) -> tuple[int, int, str] | None:
            epoch = await newest_of(c, log)
            if epoch is None:
                return None
            upto = await _next(c, epoch)
            return epoch, upto, (await _digests(c, epoch, upto - 1)).get(upto - 1, "")

        return await self._db.read(work)

    async def entries(self, epoch: int | None = None) -> list[MirroredEntry]:
        """Mirrored entries of one epoch, or of all, in order."""
        statement = select(LOG).order_by(LOG.c.epoch, LOG.c.index)
        if epoch is not None:
            statement = statement.where(LOG.c.epoch == epoch)
        return [_row(row) for row in await self._db.rows(statement)]

    async def mirror_since(self, epoch: int, index: int, limit: int | None = None) -> list[MirroredEntry]:
        """Entries of one epoch from an index on, in order; at most `limit`."""
        return [_row(row) for row in await self._db.rows(_part(select(LOG), epoch, index, limit))]

    async def mirror_digest(self, epoch: int, index: int) -> str:
        """The digest of one entry, "" when it is not mirrored: it covers all entries before it."""
        rows = await self._db.rows(select(LOG.c.digest).where(LOG.c.epoch == epoch, LOG.c.index == index))
        return str(rows[0][0]) if rows else ""

    async def mirror_chunks(
        self, epoch: int, index: int = 0, size: int = CHUNK
    ) -> AsyncIterator[Sequence[RawEntry]]:
        """The same as rows, for a reader of a million: a chunk of at most `size` at a time.

        Each chunk is a transaction of its own: a reader notices a rewind by `mirror_digest`.
        """
        raw = select(LOG.c.index, LOG.c.sender, LOG.c.timestamp, LOG.c.text)
        while found := await self._db.tuples(_part(raw, epoch, index, size)):
            yield found
            index = found[-1][0] + 1

    async def first_broken(self, epoch: int) -> int | None:
        """The first index of an epoch that is missing or whose digest is not its own; None when all hold."""
        index, digest = 0, ""
        while found := await self._db.rows(_part(select(LOG), epoch, index, CHUNK)):
            for _, at, sender, timestamp, text, held in found:
                digest = chained(digest, epoch, index, sender, timestamp, text)
                if (at, held) != (index, digest):
                    return index
                index += 1
        return None

    async def _append(self, c: Connection, rows: Sequence[_LogRow]) -> int:
        if rows:
            await self._db.append_many(c, LOG, rows)
        return len(rows)

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

    async def _note_rewind(
        self, c: Connection, epoch: int, index: int, *, gone: int, new: int, back: bool = False
    ) -> None:
        log = await c.scalar(select(EPOCHS.c.log).where(EPOCHS.c.epoch == epoch)) or ""
        row = RewindRow(at=self._now(), log=log, epoch=epoch, index=index, gone=gone, new=new, back=back)
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


def _part(
    statement: Select[*tuple[Any, ...]], epoch: int, index: int, limit: int | None
) -> Select[*tuple[Any, ...]]:
    found = statement.where(LOG.c.epoch == epoch, LOG.c.index >= index)
    return found.order_by(LOG.c.index).limit(limit)


async def _upto(c: Connection, epoch: int) -> int:
    """The next index of an epoch that is its log's newest; ChainError for another one."""
    now = await newest_of(c, epoch=epoch)
    if epoch != now:
        raise ChainError(f"epoch {epoch} of the log is over; it is {now} now")
    return await _next(c, epoch)


async def _next(c: Connection, epoch: int) -> int:
    last = await c.scalar(select(func.max(LOG.c.index)).where(LOG.c.epoch == epoch))
    return 0 if last is None else int(last) + 1


async def _digests(c: Connection, epoch: int, start: int) -> dict[int, str]:
    statement = select(LOG.c.index, LOG.c.digest).where(LOG.c.epoch == epoch, LOG.c.index >= start)
    return {row[0]: row[1] for row in await c.execute(statement)}


def _rows(epoch: int, start: int, entries: Sequence[LogRecord], digest: str) -> list[_LogRow]:
    rows: list[_LogRow] = []
    for index, entry in enumerate(entries, start):
        sender, at = plain(entry.sender.lower()), max(0, min(entry.timestamp, INT_MAX))
        text = entry.text.encode("utf-8", "surrogatepass")
        digest = chained(digest, epoch, index, sender, at, text)
        rows.append((epoch, index, sender, at, text, digest))
    return rows


def chained(previous: str, epoch: int, index: int, sender: str, timestamp: int, text: bytes) -> str:
    """The digest of an entry after the entry with the digest `previous` ("" before the first)."""
    head = f"{previous}\n{epoch}\n{index}\n{sender}\n{timestamp}\n"
    return hashlib.sha256(head.encode() + text).hexdigest()


def _row(row: AnyRow) -> MirroredEntry:
    values = dict(row._mapping)
    values["text"] = values["text"].decode("utf-8", "surrogatepass")
    return MirroredEntry(**values)
