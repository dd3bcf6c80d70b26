"""Updates the local mirror of a log: nothing lost, nothing doubled.

Every pass begins with the last mirrored entries. What the log shows there decides:

    the same                       read on from the cursor
    the same, but the log is short a lagging node; believed when it stays so (`patience_s`), then a rewind
    a first entry that differs     the log was cleared: a new epoch begins, the old one is kept
    another one that differs       a reorganisation: the entries after the common ancestor are replaced
    the epoch before, once more    a reorganisation that undid a clear: that epoch goes on

A reorganisation that replaces even the first entry looks like a clear, and is taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from fleet.clock import Clock, SystemClock
from fleet.errors import ChainError
from fleet.store.rows import LogRecord, MirroredEntry
from fleet.triage.log.pages import MOST, PAGE, LogChanged, LogReader, PageReader, PassLimits, same

OVERLAP = 32
"""Mirrored entries that every pass reads again: one alone may stand in its place by chance after a
reorganisation, which can reorder the entries of a block."""
RESETS = 3
"""Most rewrites of the log during one pass before it is rejected."""
CONFLICTS = 20
"""Most times that a pass starts over because another process mirrored the same log."""
PATIENCE_S = 30.0
"""Seconds that a log must stay shorter than its mirror before that is believed: a lagging node moves on
in this time."""


class LogMirror(Protocol):
    """The part of the journal that holds the mirror; writes raise ChainError for a changed past."""

    async def mirror(self, epoch: int, start_index: int, entries: Sequence[LogRecord], /) -> int: ...
    async def rewind(self, epoch: int, index: int, entries: Sequence[LogRecord], /, *, tip: str) -> int: ...
    async def mirror_cursor(self) -> tuple[int, int]: ...
    async def mirror_of(self, log: str, /) -> tuple[int, int, str] | None: ...
    async def mirror_since(
        self, epoch: int, index: int, limit: int | None = None, /
    ) -> list[MirroredEntry]: ...
    async def new_epoch(self, log: str, /, *, after: int | None = None) -> int: ...
    async def first_epoch(self, log: str, /, *, adopt: bool) -> int: ...
    async def undo_clear(self, epoch: int, /, *, tip: str) -> int: ...
    async def epoch_before(self, epoch: int, /) -> int | None: ...
    async def entries(self, epoch: int | None = None, /) -> list[MirroredEntry]: ...
    async def get(self, key: str, /) -> str | None: ...
    async def put(self, key: str, value: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class MirrorState:
    """The mirror's position, and what this pass did."""

    epoch: int
    next_index: int
    new: int
    resets: int
    """Epochs that began in this pass."""
    rewinds: int = 0
    """Reorganisations met in this pass (`Journal.rewinds` lists them)."""
    behind: int = 0
    """Mirrored entries that the node does not show at present."""
    digest: str = field(default="", compare=False)
    """Of the last entry. It covers all before it: a reader that has folded entries compares it."""


async def follow(  # noqa: PLR0913  what a page is read with
    log: LogReader,
    mirror: LogMirror,
    *,
    name: str = "",
    page: int = PAGE,
    limits: PassLimits | None = None,
    patience_s: float = PATIENCE_S,
    clock: Clock | None = None,
) -> MirrorState:
    """Reads on from the cursor to the end of the log.

    `name` is the log's own ("<chain id>:<contract>", "file:<name>"): each log has epochs of its own. `page`
    is the size of the first page; later ones are sized by what they brought. ChainError when the log keeps
    changing or exceeds the limits of a pass; what was mirrored stays. Several processes may follow at once.
    """
    limits = limits or PassLimits()
    one = _Pass(log, mirror, name, PageReader(log, limits, page), patience_s, clock or SystemClock())
    with anyio.move_on_after(limits.seconds) as scope:
        await one.run()
    if scope.cancelled_caught:
        raise ChainError(
            f"the log has no end within {limits.seconds:g} s; {one.new} entries were mirrored",
            remedy="the next pass goes on there; check the node",
        )
    epoch, upto, digest = await one.position()
    return MirrorState(epoch, upto, one.new, one.resets, one.rewinds, one.behind, digest)


@dataclass
class _Pass:
    log: LogReader
    mirror: LogMirror
    name: str
    pages: PageReader
    patience_s: float
    clock: Clock
    count: int = 0
    new: int = 0
    resets: int = 0
    rewinds: int = 0
    behind: int = 0

    async def run(self) -> None:
        for _ in range(CONFLICTS):
            try:
                epoch, upto, tip = await self.position()
                if not await self._agree(epoch, upto, tip):
                    continue
                if not self.behind and self.count > upto:
                    await self._read_on(epoch, upto)
                return
            except LogChanged:
                continue
        raise ChainError("the log was rewritten repeatedly while it was read", remedy="try again")

    async def position(self) -> tuple[int, int, str]:
        """Epoch, next index and last digest; gives a log that was never followed its first epoch."""
        if (at := await self.mirror.mirror_of(self.name)) is None:
            unnamed = await self.mirror.mirror_of("")
            adopt = unnamed is not None and (not unnamed[1] or await self._first_is(unnamed[0]))
            await self.mirror.first_epoch(self.name, adopt=adopt)
            at = await self.mirror.mirror_of(self.name)
        if at is None:
            raise ChainError(f"the journal has no epoch of the log {self.name!r}")
        return at

    async def _agree(self, epoch: int, upto: int, tip: str) -> bool:
        """Whether the log continues the mirror; False when the mirror was changed instead."""
        count = self.count = await self.log.count()
        self.behind = 0
        if not upto:
            return not (count and await self._undone(epoch, tip))
        shown = min(upto, count)
        start = max(0, shown - OVERLAP)
        if shown and await self._differs(epoch, start, shown) is None:
            return shown == upto or await self._short(epoch, shown, upto, tip)
        if shown and await self._first_is(epoch):
            await self._replace(epoch, await self._ancestor(epoch, start), tip)
            return False
        if not (count and await self._undone(epoch, tip)):
            self._bound(self.resets)
            self.resets += await self.mirror.new_epoch(self.name, after=epoch) != epoch
        return False

    async def _first_is(self, epoch: int) -> bool:
        """Whether the log begins with the first entry of this epoch."""
        return await self._differs(epoch, 0, 1) is None

    async def _differs(self, epoch: int, start: int, end: int) -> int | None:
        """The first index in start..end-1 at which the log differs from the mirror; None when none does."""
        found = await self.pages.read(start, end)
        known = await self.mirror.mirror_since(epoch, start, end - start)
        pairs = zip(found, known, strict=False)
        differs = next((at for at, pair in enumerate(pairs) if not same(*pair)), None)
        if differs is None and len(found) < len(known):
            raise LogChanged  # it was longer a moment ago
        return None if differs is None else start + differs

    async def _ancestor(self, epoch: int, start: int) -> int:
        """The first index that was replaced, looking backwards until a whole stretch agrees."""
        first, size = start, OVERLAP
        differs: int | None = start
        low = start
        while low and differs is not None:
            low, end = max(0, low - size), low
            differs = await self._differs(epoch, low, end)
            first = first if differs is None else differs
            size *= 2
        return first

    async def _replace(self, epoch: int, low: int, tip: str) -> None:
        """Replace what follows the common ancestor, which is at `low` or a little later."""
        _, upto, now = await self.position()
        if now != tip:
            raise LogChanged
        first = await self._differs(epoch, low, min(low + OVERLAP, upto))
        index = low if first is None else first
        found = await self.pages.read(index, min(await self.log.count(), upto, index + MOST))
        await self._rewind(epoch, index, found, tip)

    async def _short(self, epoch: int, shown: int, upto: int, tip: str) -> bool:
        """A log that agrees but ends early: the node lags, or a reorganisation dropped the last entries."""
        key, now = f"log.short.{self.name}", self.clock.now().timestamp()
        noted = (await self.mirror.get(key) or "").split()
        since = float(noted[1]) if noted[:1] == [f"{epoch}:{shown}:{tip}"] else now
        if now - since >= self.patience_s:
            await self._rewind(epoch, shown, [], tip)
            return False
        if since == now:
            await self.mirror.put(key, f"{epoch}:{shown}:{tip} {now}")
        self.behind = upto - shown
        return True

    async def _rewind(self, epoch: int, index: int, found: Sequence[LogRecord], tip: str) -> None:
        self._bound(self.rewinds)
        try:
            self.new += await self.mirror.rewind(epoch, index, found, tip=tip)
        except ChainError:
            raise LogChanged from None
        self.rewinds += 1

    async def _undone(self, epoch: int, tip: str) -> bool:
        """Whether the log is the one of the epoch before again: then that one goes on."""
        before = await self.mirror.epoch_before(epoch)
        if before is None or not await self._first_is(before):
            return False
        self._bound(self.rewinds)
        try:
            await self.mirror.undo_clear(epoch, tip=tip)
        except ChainError:
            raise LogChanged from None
        self.rewinds += 1
        return True

    async def _read_on(self, epoch: int, upto: int) -> None:
        last = (await self.mirror.mirror_since(epoch, upto - 1, 1))[0] if upto else None

        async def write(start: int, entries: Sequence[LogRecord]) -> None:
            if entries:
                try:
                    self.new += await self.mirror.mirror(epoch, start, entries)
                except (ChainError, ValueError):
                    raise LogChanged from None

        await self.pages.read_on(upto, self.count, last, write)

    def _bound(self, done: int) -> None:
        if done >= RESETS:
            raise ChainError("the log was rewritten repeatedly while it was read", remedy="try again")
