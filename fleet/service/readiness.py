"""Whether the daemon takes new work, and that its work loop turns; a service manager is told both."""

from __future__ import annotations

import os

from fleet.clock import Clock
from fleet.service.notify import Notifier


class Readiness:
    """Beaten by the work loop. `draining` is the reason for the drain, "" before it."""

    def __init__(self, notifier: Notifier, clock: Clock) -> None:
        self._notifier, self._clock = notifier, clock
        self._beat_at = clock.monotonic()
        self.ready = False
        self.draining = ""

    def beat(self) -> None:
        """One turn of the work loop: what feeds the watchdog."""
        self._beat_at = self._clock.monotonic()
        self._notifier.feed()
        if not self.ready and not self.draining:
            self.ready = True
            self._notifier.say("READY=1", f"MAINPID={os.getpid()}")

    @property
    def beat_age_s(self) -> float:
        """Seconds since the work loop turned."""
        return self._clock.monotonic() - self._beat_at

    def drain(self, reason: str, within_s: float) -> None:
        """No new runs; the process ends within so many seconds."""
        self.draining = reason
        self.stop()
        self._notifier.say(f"EXTEND_TIMEOUT_USEC={int(within_s * 1e6)}")

    def stop(self) -> None:
        """It takes no new work any more."""
        self.ready = False
        self._notifier.say("STOPPING=1")
