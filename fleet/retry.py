"""Every retry policy of the fleet, each with its reason (decision 61)."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from secrets import SystemRandom

_MOST = 64
"""Maximum counted failures: more would overflow, and every `longest_s` is reached before."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Pauses in seconds: `first_s`, then `factor` times the previous pause, at most `longest_s`."""

    first_s: float
    longest_s: float
    factor: float = 2.0
    jitter: float = 0.0
    """Fraction by which a pause may be shorter or longer, so that clients do not retry simultaneously."""
    attempts: int = sys.maxsize
    """Most attempts, with the first."""
    total_s: float = math.inf
    """Seconds from the first failure after which no attempt begins."""

    def pause(self, failures: int, draw: float | None = None) -> float:
        """The pause after `failures` earlier failures; `draw`, from 0 to 1, is the position in the jitter."""
        plain = min(self.longest_s, self.first_s * self.factor ** min(failures, _MOST))
        if not self.jitter:
            return plain
        return plain * (1 + self.jitter * (2 * (SystemRandom().random() if draw is None else draw) - 1))

    def next_pause(
        self, failures: int, since_s: float = 0.0, asked_s: float = 0.0, draw: float | None = None
    ) -> float | None:
        """The same, at least as long as the other side asked for; None after the last attempt.

        `since_s` is the time since the first failure.
        """
        pause = max(self.pause(failures, draw), asked_s)
        return pause if failures + 1 < self.attempts and since_s + pause <= self.total_s else None


NODE_BUSY = Retry(0.25, 4.0, jitter=0.5, total_s=20.0)
"""A limit of requests: HTTP 429, -32005."""
NODE_ASKED = Retry(0.25, 1.0, jitter=0.5, total_s=2.0)
"""The same while a person waits for a list, which otherwise says that the log was not read."""
NODE_BEHIND = Retry(0.1, 1.0, jitter=0.5, total_s=10.0)
"""A replica that does not have the block yet: some blocks of a second, or most of one of twelve."""
OWN_BLOCK = Retry(0.05, 0.5, jitter=0.5, total_s=3.0)
"""A read just after a transaction of ours, answered by a replica that does not have its block."""
NODE_FAULTY = Retry(0.05, 0.5, jitter=0.5, total_s=2.0)
"""No usable answer: a page of HTML, a cut connection, 5xx, an internal error, a node that restarts."""
NO_RETRY = Retry(0.1, 0.1, attempts=1)
"""A look that has its own schedule."""
NODE_WRITE = Retry(0.1, 0.2, attempts=3)
"""Signed bytes whose answer was lost: they are journalled, and settling checks what became of them."""
NONCE_TAKEN = Retry(0.025, 0.1, jitter=1.0, attempts=6)
"""Another sender has the nonce: without jitter, two senders in step would collide every time."""
RECEIPT = Retry(0.005, 1.0, factor=1.5)
"""A transaction that is in no block yet: blocks of a devnet are instant, others take seconds."""
SUBSCRIPTION = Retry(1.0, 300.0)
"""A subscription to new blocks that was lost: polling goes on meanwhile."""
START_UP = Retry(1.0, 60.0)
"""A node that does not answer, or a full disk, when the daemon starts."""

DATABASE = Retry(0.002, 0.25, jitter=0.5)
"""A transaction that lost against another one; the store's `busy_s` limits the total."""
QUEUE = Retry(1.0, 30.0)
"""A journal that refuses requests, asked by the queue of runs."""
CLEAN_UP = Retry(5.0, 300.0)
"""The clean-up after a run that failed: what it waits for is often a node or a peer."""
PROPOSAL = Retry(5.0, 300.0)
"""Proposals left halfway: the janitor ends the runs of the dead first, and a remote may not answer."""
PERSONA_FILE = Retry(5.0, 5.0)
"""A changed persona file while the journal refuses requests: a person waits for its effect."""

SILENT_TARGET = Retry(0.5, 4.0, attempts=6)
"""A tool's call whose target does not answer: about eleven seconds, as a restart takes."""
WITHDRAWN_TARGET = Retry(5.0, 5.0 * 1_024)
"""A target that a run has given up: one call tries it again, ever more rarely."""
MODEL = Retry(0.1, 2.0, jitter=1.0, attempts=3, total_s=20.0)
"""A model's endpoint, before any output; one that asks for a longer pause counts as unavailable."""
NOTICE = Retry(60.0, 3_600.0, total_s=86_400.0)
"""A notice that did not reach every receiver, by webhook or otherwise; dropped after a day."""
