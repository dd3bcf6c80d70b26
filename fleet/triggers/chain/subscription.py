"""A subscription to new blocks that only wakes the chain watch, and reconnects when lost.

Events are read over HTTP from the durable cursor, as without a subscription (chain.py). So one that lies,
repeats itself, floods, falls silent or disconnects affects only the time of the next look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn, Protocol

import anyio
from anyio import to_thread

from fleet.chain.node.recursion_limit import recursion_limit_kept
from fleet.clock import Clock, SystemClock
from fleet.errors import Unreachable
from fleet.retry import SUBSCRIPTION

STEADY_S = 60.0
"""Seconds after which a subscription counts as good and resets the back-off."""


class FollowHeads(Protocol):
    """Subscribes and calls `head` at each new block until the subscription is lost: raises Unreachable."""

    async def __call__(
        self, url: str, *, subscribed: Callable[[], None], head: Callable[[], None]
    ) -> NoReturn: ...


class HeadSubscription:
    """Calls `wake` at each new block, and when a subscription begins, since blocks may have preceded it.

    `report` gets "" when a subscription begins, and the reason when it is lost or cannot be made; each once,
    not at every attempt.
    """

    def __init__(
        self,
        url: str,
        wake: Callable[[], None],
        report: Callable[[str], None],
        *,
        follow: FollowHeads | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._url, self._wake, self._report = url, wake, report
        self._follow, self._sleep = follow, sleep
        self._clock = clock or SystemClock()
        self._reported: str | None = None
        self._began: float | None = None

    async def run(self) -> NoReturn:
        """Subscribe, and resubscribe after each loss, until cancelled."""
        follow = self._follow
        if follow is None:
            follow = await to_thread.run_sync(_over_websocket)
        losses = 0
        while True:
            self._began = None
            try:
                await follow(self._url, subscribed=self._subscribed, head=self._wake)
            except Unreachable as error:
                self._say(str(error))
            if self._began is not None and self._clock.monotonic() - self._began >= STEADY_S:
                losses = 0
            await self._sleep(SUBSCRIPTION.pause(losses))
            losses += 1

    def _subscribed(self) -> None:
        self._began = self._clock.monotonic()
        self._say("")
        self._wake()

    def _say(self, trouble: str) -> None:
        if trouble != self._reported:
            self._reported = trouble
            self._report(trouble)


def _over_websocket() -> FollowHeads:
    with recursion_limit_kept():  # web3 takes a second, and most profiles have no `ws`
        from fleet.triggers.chain.websocket import follow_heads

    return follow_heads
