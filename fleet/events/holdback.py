"""What of a message may be told while it is still being said: masked, and never a part of a secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fleet.text import clean

MOST = 4_096
"""Characters that may wait for the end of one secret; a message that goes beyond is no longer told live."""
PIECE = 16_384
"""Characters of one piece that are told; what is more is cut with a mark, as in every text."""


@dataclass(slots=True)
class Holdback:
    """The end of a message that is not told yet, since a secret may go on in the next piece.

    Told together, the pieces read like the mask of the whole. `reach` is the most characters of a secret
    that can stand at an end without being one yet.
    """

    mask: Callable[[str], str]
    reach: int
    _end: str = field(default="", repr=False)
    _is_mute: bool = False

    def add(self, text: str) -> str:
        """What may be told now that this came."""
        if self._is_mute:
            return ""
        # what is invisible goes first: between the letters of a secret it would make it longer than `reach`
        self._end += clean(text, PIECE, newlines=True)
        told, left = self._end[: (cut := max(len(self._end) - self.reach, 0))], self._end[cut:]
        masked = self.mask(told)
        if masked + self.mask(left) == self.mask(self._end):
            self._end = left
            return masked
        self._is_mute = len(self._end) > self.reach + MOST
        return ""

    def rest(self) -> str:
        """What is left to tell of a message that has ended."""
        end, self._end = self._end, ""
        return "" if self._is_mute else self.mask(end)
