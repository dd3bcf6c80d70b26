"""How long to wait before what failed is tried again: the one policy of every retry. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_MOST = 64
"""Doublings that are counted: more would overflow, and every longest pause is reached before."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses in seconds: `first`, then `factor` times as long each time, and never longer than `longest`."""

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.0
    """The share of a pause by which it may be shorter or longer, so that many do not try at one moment."""

    def pause(self, failures: int, draw: float = 0.5) -> float:
        """The pause after so many failures before this one; `draw`, from 0 to 1, is where in the jitter."""
        plain = min(self.longest, self.first * self.factor ** min(failures, _MOST))
        return plain * (1 + self.jitter * (2 * draw - 1))

    def fits(self, failures: int, left_s: float) -> bool:
        """Whether that pause, without jitter, ends before a deadline that is so far away."""
        return self.pause(failures) <= left_s
