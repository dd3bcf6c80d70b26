"""The part of an unfinished message that may be shown: masked, and never part of a secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fleet.text import clean

MOST = 4_096
"""Characters that may be held back for one secret; the rest of a message beyond it is not shown live."""
PIECE = 16_384
"""Most characters of one piece; the rest is cut with a mark, as in every text."""


@dataclass(slots=True)
class Holdback:
    """The held-back end of a message, since a secret may continue in the next piece.

    Together the pieces read like the mask of the whole. `reach` is the most characters of a secret
    that can be at an end without being recognised yet.
    """

    mask: Callable[[str], str]
    reach: int
    _end: str = field(default="", repr=False)
    _is_mute: bool = False

    def add(self, text: str) -> str:
        """The text that may be shown after this piece."""
        if self._is_mute:
            return ""
        # remove invisible characters first: inside a secret they would make it longer than `reach`
        self._end += clean(text, PIECE, newlines=True)
        told, left = self._end[: (cut := max(len(self._end) - self.reach, 0))], self._end[cut:]
        masked = self.mask(told)
        if masked + self.mask(left) == self.mask(self._end):
            self._end = left
            return masked
        self._is_mute = len(self._end) > self.reach + MOST
        return ""

    def rest(self) -> str:
        """The rest of an ended message."""
        end, self._end = self._end, ""
        return "" if self._is_mute else self.mask(end)
