"""Updates the local mirror of the log: nothing lost, nothing doubled, nothing deleted.

Every page begins with the last mirrored entry. If that entry changed, or the log got shorter, the log was
cleared (or reorganised): a new epoch starts at index 0 and the old one is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fleet.errors import ChainError
from fleet.store.rows import LogEntry, MirroredEntry

PAGE = 200
PAGES = 20_000
"""Most pages per pass; the rest is left for the next one."""
RESETS = 3
"""Most rewrites of the log during one pass before it is rejected."""


class LogRecord(Protocol):
    """One entry as the log's reader returns it."""

    @property
    def sender(self) -> str: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def text(self) -> str: ...


class LogReader(Protocol):
    """The log on chain, read by index."""

    async def count(self) -> int:
        """Entries in the log now."""

    async def range(self, start: int, count: int, /) -> Sequence[LogRecord]:
        """At most `count` entries from index `start`; fewer at the end, none past it."""


class LogMirror(Protocol):
    """The part of the journal that holds the mirror; `mirror` raises ChainError for a changed past."""

    async def mirror(self, epoch: int, start_index: int, entries: Sequence[LogEntry], /) -> int: ...
    async def mirror_cursor(self) -> tuple[int, int]: ...
    async def new_epoch(self) -> int: ...
    async def entries(self, epoch: int | None = None, /) -> list[MirroredEntry]: ...


@dataclass(frozen=True, slots=True)
class MirrorState:
    """The mirror's position, and what this pass did."""

    epoch: int
    next_index: int
    new: int
    resets: int


async def follow(log: LogReader, mirror: LogMirror, *, page: int = PAGE) -> MirrorState:
    """Reads on from the cursor to the end of the log; ChainError when the log keeps changing."""
    new = resets = 0
    for _ in range(PAGES):
        epoch, upto = await mirror.mirror_cursor()
        got = await _page(log, mirror, epoch, upto, page)
        if got is None:
            if resets == RESETS:
                raise ChainError("the log was rewritten repeatedly while it was read", remedy="try again")
            if (await mirror.mirror_cursor())[0] == epoch:  # no other process has seen it yet
                await mirror.new_epoch()
            resets += 1
            continue
        new += got
        if got == 0:
            break
    epoch, upto = await mirror.mirror_cursor()
    return MirrorState(epoch, upto, new, resets)


async def _page(log: LogReader, mirror: LogMirror, epoch: int, upto: int, page: int) -> int | None:
    """Number of new entries; None when the mirrored entry differs from the log."""
    if await log.count() < upto:
        return None
    overlap = min(upto, 1)
    entries = [
        LogEntry(entry.sender.lower(), entry.timestamp, entry.text)
        for entry in await log.range(upto - overlap, page + overlap)
    ]
    if len(entries) < overlap:
        return None
    if not entries:
        return 0
    try:
        return await mirror.mirror(epoch, upto - overlap, entries)
    except ChainError:
        return None
