"""Reports to a service manager whether the daemon accepts new work and its work loop is alive."""

from __future__ import annotations

import os
import time

from fleet.clock import Clock
from fleet.service.notify import Notifier


class Readiness:
    """The work loop calls `beat`. `draining` is the reason for the drain, "" before it."""

    def __init__(self, notifier: Notifier, clock: Clock) -> None:
        self._notifier, self._clock = notifier, clock
        self._beat_at = clock.monotonic()
        self.ready = False
        self.draining = ""
        self._again = False

    def beat(self) -> None:
        """Feed the watchdog; called at each turn of the work loop."""
        self._beat_at = self._clock.monotonic()
        self._notifier.feed()
        if not self.ready and not self.draining:
            self.ready = True
            self._notifier.say("READY=1", f"MAINPID={os.getpid()}")

    @property
    def beat_age_s(self) -> float:
        """Seconds since the last turn of the work loop."""
        return self._clock.monotonic() - self._beat_at

    def drain(self, reason: str, within_s: float, *, again: bool = False) -> None:
        """Start no more runs; the process ends within `within_s` seconds, or starts `again`."""
        self.draining, self._again = reason, again
        self.stop()
        self._notifier.say(f"EXTEND_TIMEOUT_USEC={int(within_s * 1e6)}")

    def stop(self) -> None:
        """Accept no more work."""
        self.ready = False
        now = f"MONOTONIC_USEC={time.monotonic_ns() // 1000}"
        self._notifier.say(*(("RELOADING=1", now) if self._again else ("STOPPING=1",)))
