"""The back-off policy of every retry. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_MOST = 64
"""Maximum counted failures: more would overflow, and every `longest` is reached before."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses in seconds: `first`, then `factor` times the previous pause, at most `longest`."""

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.0
    """Fraction by which a pause may be shorter or longer, so that clients do not retry simultaneously."""

    def pause(self, failures: int, draw: float = 0.5) -> float:
        """The pause after `failures` earlier failures; `draw`, from 0 to 1, is the position in the jitter."""
        plain = min(self.longest, self.first * self.factor ** min(failures, _MOST))
        return plain * (1 + self.jitter * (2 * draw - 1))

    def fits(self, failures: int, left_s: float) -> bool:
        """Whether that pause, without jitter, ends before a deadline in `left_s` seconds."""
        return self.pause(failures) <= left_s
