"""What a service manager learns: whether the daemon accepts new work, and that its work loop is alive.

systemd's notification protocol: datagrams to `$NOTIFY_SOCKET`; a no-op without one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

from fleet.clock import Clock


class Notifier:
    """Send `READY=1`, `STATUS=…`, `STOPPING=1`, and feed the watchdog if there is one.

    Only the work loop may call `feed`: a timer would go on feeding through a hang.
    """

    def __init__(self) -> None:
        place = os.environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + place[1:] if place.startswith("@") else place
        ours = os.environ.get("WATCHDOG_PID") in (None, str(os.getpid()))
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        self._every_s = int(microseconds) / 2e6 if ours and microseconds.isdecimal() else 0.0
        self._fed = 0.0
        self._status = ""

    def say(self, *words: str) -> None:
        """Send assignments such as `READY=1`; a missing manager does not end the daemon."""
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.connect(self._address)
            line.send("\n".join(words).encode())

    def status(self, text: str) -> None:
        """The line that `systemctl status` shows; sent when it changed."""
        if text != self._status:
            self._status = text
            self.say(f"STATUS={text}")

    def feed(self) -> None:
        """Feed the watchdog, at most twice per period."""
        now = time.monotonic()
        if self._every_s and now - self._fed >= self._every_s / 2:
            self._fed = now
            self.say("WATCHDOG=1")


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
