"""Reads a log in pages: several in flight, sized by what earlier ones brought, bounded in time and bytes.

Each page begins with the last entry of the page before it, so that a log which changes between two pages is
noticed. What was read is written while the next pages are on their way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from fleet.errors import ChainError
from fleet.store.rows import LogRecord

PAGE = 200
"""Entries of the first page."""
MOST = 4_096
"""Most entries of one page, and of one replacement after a reorganisation."""
PAGE_BYTES = 512 << 10
"""Text that a page aims at: smaller ones cost more requests, larger ones wait longer for the node."""
IN_FLIGHT = 3
"""Pages asked for at once, and most of one write: the node makes the next ones while this process reads one
(mark B7), and a commit costs as much as a page."""
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


@dataclass(slots=True)
class _AskedPage:
    """Entries start..end-1 of a log, with the one before them: on their way, `found` or a `failure`."""

    start: int
    end: int
    found: list[LogRecord] = field(default_factory=list)
    failure: Exception | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _Stretch:
    """What was read so far: up to index `at`, of which the `batch` of some `pages` is not written yet."""

    at: int
    last: LogRecord | None
    batch: list[LogRecord] = field(default_factory=list)
    pages: int = 0
    failure: Exception | None = None

    def take(self, page: _AskedPage) -> bool:
        """Add a page that continues this; otherwise say why it does not in `failure`."""
        if page.failure is not None:
            self.failure = page.failure
        elif page.start and not (page.found and self.last and same(page.found[0], self.last)):
            self.failure = LogChanged()
        else:
            new = page.found[min(page.start, 1) :]
            self.batch += new
            self.pages += 1
            self.at += len(new)
            self.last = new[-1] if new else self.last
        return self.failure is None

    async def put_down(self, write: Write) -> None:
        """Write what is not written yet."""
        if self.batch:
            batch, self.batch, self.pages = self.batch, [], 0
            await write(self.at - len(batch), batch)


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
        while True:
            stretch = _Stretch(at, last)
            async with anyio.create_task_group() as group:
                try:
                    await self._read_to(count, stretch, write, group)
                except Exception as error:  # not in an exception group
                    stretch.failure = error
                group.cancel_scope.cancel()  # what is still on its way is not needed
            if stretch.failure is not None:
                raise stretch.failure
            at, last = stretch.at, stretch.last
            if at < count:
                return  # the log ends here now
            count = await self._log.count()
            if count < at:
                raise LogChanged
            if count == at:
                return

    async def _read_to(self, count: int, stretch: _Stretch, write: Write, group: TaskGroup) -> None:
        """Pages up to `count`, the next ones on their way while one is looked at and written."""
        flight: deque[_AskedPage] = deque()
        asked, good, before = stretch.at, True, list[LogRecord]()
        while good and stretch.at < count:
            while asked < count and len(flight) < IN_FLIGHT:
                page = _AskedPage(asked, min(count, asked + self._page))
                group.start_soon(self._fetch, page)
                flight.append(page)
                asked = page.end
            if stretch.pages == IN_FLIGHT:
                await stretch.put_down(write)
            page = flight.popleft()
            await page.done.wait()
            if good := stretch.take(page):
                if before:
                    size = max(1, sum(len(one.text) for one in before) // len(before))
                    self._page = max(1, min(PAGE_BYTES // size, 16 * self._page, MOST))
                before, good = page.found, stretch.at == page.end
        await stretch.put_down(write)

    async def _fetch(self, page: _AskedPage) -> None:
        try:
            page.found = await self.read(max(0, page.start - 1), page.end)
        except Exception as error:  # an outcome: the pages before it are good
            page.failure = error
        page.done.set()

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
