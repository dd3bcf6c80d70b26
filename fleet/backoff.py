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


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a request to a node is repeated after its first failure, with which pauses."""

    backoff: Backoff
    patience_s: float
    """Seconds from the first failure after which no attempt begins; a run's own deadline ends it too."""

    def pause(self, failures: int, since_s: float, asked_s: float = 0.0, draw: float = 0.5) -> float | None:
        """Seconds until the next attempt, at least those that the node asked for; None: give up."""
        wait = max(self.backoff.pause(failures, draw), asked_s)
        return wait if since_s + wait <= self.patience_s else None


BUSY = Retry(Backoff(0.25, 4.0, jitter=0.5), 20.0)
"""A limit of requests: HTTP 429, -32005."""
BEHIND = Retry(Backoff(0.1, 1.0, jitter=0.5), 10.0)
"""A replica that does not have the block yet: some blocks of a second, or most of one of twelve."""
OWN_BLOCK = Retry(Backoff(0.05, 0.5, jitter=0.5), 3.0)
"""A read just after a transaction of ours, answered by a replica that does not have its block."""
GARBLED = Retry(Backoff(0.05, 0.5, jitter=0.5), 2.0)
"""No usable answer: a page of HTML, a cut connection, 5xx, an internal error, a node that restarts."""
ONCE = Retry(Backoff(0.1, 0.1), 0.0)
"""No attempt but the first: a look that has its own schedule."""
