"""The attempts of one request to a node: what kind of trouble it met, and how long that is waited for."""

from __future__ import annotations

import time
from collections.abc import Mapping

import anyio

from fleet.chain.node.words import Meaning, meaning_of
from fleet.errors import NodeBusy, RpcError, Unreachable
from fleet.retry import Retry
from fleet.unanswered import NO_NAME, NO_ROUTE, TIMED_OUT

_LASTS = (TIMED_OUT, NO_NAME, NO_ROUTE)
"""Silences that another attempt at once does not end."""


class NodePatience:
    """Waits between the attempts of one request, by kind of trouble."""

    def __init__(self, retries: Mapping[Meaning, Retry]) -> None:
        self._retries = retries
        self._failures = 0
        self._since = 0.0

    async def wait(self, error: Unreachable | RpcError) -> bool:
        """Pause before another attempt; False when there is none."""
        meaning, asked_s = trouble(error)
        retry = self._retries.get(meaning)
        if retry is None:
            return False
        now = time.monotonic()
        self._since = self._since or now
        pause = retry.next_pause(self._failures, now - self._since, asked_s)
        if pause is None:
            return False
        self._failures += 1
        await anyio.sleep(pause)
        return True


def trouble(error: Unreachable | RpcError) -> tuple[Meaning, float]:
    """What kind of trouble a failed attempt met, and the pause that the node asked for, in seconds."""
    if isinstance(error, RpcError):
        return meaning_of(error.code, str(error), error.data), 0.0
    if isinstance(error, NodeBusy):
        return Meaning.BUSY, error.asked_s
    passes = error.retryable and error.how not in _LASTS
    return (Meaning.FAULTY if passes else Meaning.OTHER), 0.0
