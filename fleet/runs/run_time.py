"""The time of one run, which stands still while it waits for a person."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import anyio

from fleet.clock import Clock


class RunTime:
    """A clock whose `monotonic()` does not count pauses, and limits of time that they move."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scopes: list[anyio.CancelScope] = []
        self._paused_at = math.nan
        self.waited_s = 0.0
        """Seconds of all pauses that are over."""

    def now(self) -> datetime:
        """Wall-clock time; it goes on."""
        return self._clock.now()

    def monotonic(self) -> float:
        """Seconds; the same throughout a pause."""
        at = self._clock.monotonic() if math.isnan(self._paused_at) else self._paused_at
        return at - self.waited_s

    @contextmanager
    def move_on_after(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """As anyio's."""
        with anyio.move_on_after(seconds) as scope, self._held(scope):
            yield scope

    @contextmanager
    def fail_after(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """As anyio's."""
        with anyio.fail_after(seconds) as scope, self._held(scope):
            yield scope

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No limit passes inside, and none has come nearer afterwards."""
        self._paused_at = self._clock.monotonic()
        before = [(scope, scope.deadline) for scope in self._scopes]
        for scope, _ in before:
            scope.deadline = math.inf
        try:
            yield
        finally:
            waited = self._clock.monotonic() - self._paused_at
            for scope, deadline in before:
                scope.deadline = deadline + waited
            self._paused_at, self.waited_s = math.nan, self.waited_s + waited

    @contextmanager
    def _held(self, scope: anyio.CancelScope) -> Iterator[None]:
        self._scopes.append(scope)
        try:
            yield
        finally:
            self._scopes.remove(scope)
