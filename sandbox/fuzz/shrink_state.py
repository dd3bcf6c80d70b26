"""The state of a shrink: the smallest input so far, and what was tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Keeps = Callable[[bytes], bool]


class Shrinking:
    """The smallest input so far. Order is by length, then by bytes, so every step ends somewhere."""

    def __init__(self, source: bytes, still: Keeps) -> None:
        self.best = source
        self._still = still
        self._failed: set[int] = set()

    def keeps(self, candidate: bytes) -> bool:
        """Take a smaller candidate that still shows the defect."""
        if (len(candidate), candidate) >= (len(self.best), self.best) or hash(candidate) in self._failed:
            return False
        if self._still(candidate):
            self.best = candidate
            return True
        self._failed.add(hash(candidate))
        return False

    def cut(self, parts: Sequence[bytes], render: Callable[[Sequence[bytes]], bytes] = b"".join) -> None:
        """Remove parts in ever smaller chunks, from the end: what comes later uses what came before."""
        left, size = list(parts), max(len(parts) // 2, 1)
        while size:
            end = len(left)
            while end > 0:
                start = max(end - size, 0)
                fewer = left[:start] + left[end:]
                if self.keeps(render(fewer)):
                    left = fewer
                end = start
            size //= 2
