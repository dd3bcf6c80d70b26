"""How many entries a node can return in one answer: found by trying, and tried anew from time to time."""

from __future__ import annotations

from dataclasses import dataclass

START = 200
"""Initial page: 150 to 260 of the longest entries fit a usual gas cap (performance.md 2)."""
AGAIN = 64
"""Full pages after which a size that failed is tried once more: the next entries may be shorter."""


@dataclass(slots=True)
class PageSize:
    """The size of the next page: four times the last while pages come whole, a middle once one has failed."""

    entries: int = START
    _whole: int = 0
    """The largest page that came whole since the last one that failed."""
    _failed: int = 0
    """The smallest size that failed; 0 for none."""
    _pages: int = 0

    def failed(self, entries: int) -> None:
        """A page of this size was too much for the node; ask for `self.entries` now."""
        smaller = self._whole if 0 < self._whole < entries else max(1, entries // 2)
        self.entries, self._failed, self._whole, self._pages = smaller, entries, 0, 0

    def came_whole(self, entries: int) -> None:
        """A page brought as many entries as were asked for."""
        if entries < self.entries:
            return
        self._whole = entries
        self._pages += 1
        if not self._failed:
            self.entries = 4 * entries
        elif self._failed - entries > max(1, self._failed // 16):
            self.entries = (entries + self._failed) // 2
        elif self._pages >= AGAIN:
            self.entries, self._failed = entries + max(1, entries // 4), 0
