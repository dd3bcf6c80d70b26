"""Reads a log in pages: several in flight, sized by what earlier ones brought, bounded in time and bytes.

Each page begins with the last entry of the page before it, so that a log which changes between two pages is
noticed. What was read is written while the next pages are on their way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from fleet.errors import ChainError
from fleet.store.rows import LogRecord

PAGE = 200
"""Entries of the first page."""
MOST = 4_096
"""Most entries of one page, and of one replacement after a reorganisation."""
PAGE_BYTES = 512 << 10
"""Text that a page aims at: smaller ones cost more requests, larger ones wait longer for the node."""
IN_FLIGHT = 3
"""Pages asked for at once: the node makes the next ones while this process reads one (mark B7)."""
_TIMESTAMPS = 2**63 - 1

Write = Callable[[int, Sequence[LogRecord]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLimits:
    """What one pass may take from a node: seconds, bytes of text, bytes of one entry."""

    seconds: float = 300.0
    bytes: int = 512 << 20
    entry: int = 1 << 20


class LogChanged(Exception):
    """The log or its mirror changed under the reader: look again."""


class LogReader(Protocol):
    """A log, read by index."""

    async def count(self) -> int:
        """Entries in the log now."""

    async def range(self, start: int, count: int, /) -> Sequence[LogRecord]:
        """At most `count` entries from index `start`; fewer at the end, none past it."""


class PageReader:
    """The reads of one pass; raises ChainError beyond its limits."""

    def __init__(self, log: LogReader, limits: PassLimits, page: int) -> None:
        self._log = log
        self._limits = limits
        self._page = page
        self._taken = 0

    async def read(self, start: int, end: int) -> list[LogRecord]:
        """Entries start..end-1; fewer only where the log ends."""
        found: list[LogRecord] = []
        while (missing := end - start - len(found)) > 0:
            part = list(await self._log.range(start + len(found), min(missing, MOST)))[:missing]
            if not part:
                break
            self._weigh(start + len(found), part)
            found += part
        return found

    async def read_on(self, at: int, count: int, last: LogRecord | None, write: Write) -> None:
        """Write all entries from index `at` on, in order; `last` is the entry before it.

        Reads up to `count`, then up to what the log counts by then, until it counts no more. What was read
        before a failure is written.
        """
        begun, batch = at, list[LogRecord]()
        while True:
            pages = self._pages(at, count)
            read = [partial(self.read, max(0, start - 1), end) for start, end in pages]
            results = await together(read, partial(write, begun, batch) if batch else None)
            begun, batch, ended = at, [], not results
            for (start, end), result in zip(pages, results, strict=True):
                if not isinstance(result, list):
                    await write(begun, batch)
                    raise result
                if start and not (result and last and same(result[0], last)):
                    await write(begun, batch)
                    raise LogChanged
                page = result[min(start, 1) :]
                batch += page
                last, at = batch[-1] if batch else last, start + len(page)
                if ended := at < end:
                    break
            self._resize(batch)
            if ended or at >= count:
                await write(begun, batch)
                count, begun, batch = at if ended else await self._log.count(), at, []
                if count < at:
                    raise LogChanged
                if count == at:
                    return

    def _pages(self, at: int, count: int) -> list[tuple[int, int]]:
        ends = range(at, min(count, at + IN_FLIGHT * self._page), self._page)
        return [(start, min(count, start + self._page)) for start in ends]

    def _resize(self, entries: Sequence[LogRecord]) -> None:
        if entries:
            size = max(1, sum(len(one.text) for one in entries) // len(entries))
            self._page = max(1, min(PAGE_BYTES // size, 16 * self._page, MOST))

    def _weigh(self, start: int, entries: Sequence[LogRecord]) -> None:
        sizes = [len(one.text) for one in entries]
        self._taken += sum(sizes)
        if max(sizes) > self._limits.entry:
            index = start + next(at for at, size in enumerate(sizes) if size > self._limits.entry)
            raise ChainError(
                f"entry {index} of the log is longer than {self._limits.entry} bytes",
                remedy="no log takes such entries: check the node",
            )
        if self._taken > self._limits.bytes:
            raise ChainError(
                f"the log brought more than {self._limits.bytes} bytes in one pass",
                remedy="what was read is mirrored, and the next pass goes on there; check the node",
            )


def same(one: LogRecord, other: LogRecord) -> bool:
    """Whether an entry is the one that the mirror holds."""
    return (
        one.text == other.text
        and one.sender.lower() == other.sender.lower()
        and max(0, min(one.timestamp, _TIMESTAMPS)) == max(0, min(other.timestamp, _TIMESTAMPS))
    )


async def together(
    reads: Sequence[Callable[[], Awaitable[list[LogRecord]]]], write: Callable[[], Awaitable[None]] | None
) -> list[list[LogRecord] | Exception]:
    """The outcome of each read; raises what the write raised."""
    done: dict[int, list[LogRecord] | Exception] = {}
    failed: list[Exception] = []

    async def read(place: int, one: Callable[[], Awaitable[list[LogRecord]]]) -> None:
        try:
            done[place] = await one()
        except Exception as error:  # an outcome: the pages before it are good
            done[place] = error

    async with anyio.create_task_group() as group:
        for place, one in enumerate(reads):
            group.start_soon(read, place, one)
        if write is not None:
            try:
                await write()
            except Exception as error:  # not in an exception group
                failed.append(error)
    if failed:
        raise failed[0]
    await checkpoint_if_cancelled()  # a read that the deadline cut short has no outcome
    return [done[place] for place in range(len(reads))]
