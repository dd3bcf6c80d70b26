"""systemd's notification protocol: datagrams to `$NOTIFY_SOCKET`; a no-op without one."""

from __future__ import annotations

import contextlib
import os
import socket
import time


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
