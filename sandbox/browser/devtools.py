"""One browser of this jail, spoken to in the DevTools protocol over a pipe. Single use.

The browser's inner sandbox is off: it needs namespaces that the jail's filter refuses. The jail is the fence,
and everything that the browser says is a stranger's. See docs/decisions/0023-browser.md.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sandbox.errors import Failure
from sandbox.spec import BROKER

PLACES = ("/usr/bin/chromium-headless-shell", "/usr/lib/chromium/chromium-headless-shell")
"""Where a headless shell is; the full browser needs sockets that a jail does not have."""
MAX_MESSAGE = 32 << 20
"""Bytes of one message from the browser: a screenshot is the longest that is asked for."""
START_S = 15.0

_SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter",
    "--block-new-web-contents",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--mute-audio",
    "--hide-scrollbars",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",  # loopback goes by the broker, too
    "--remote-debugging-pipe",
)

Happening = Callable[[str, Mapping[str, Any]], None]
"""Takes the name and the parameters of one event."""


class ProtocolError(Exception):
    """The browser refused a command: its page went away, for example."""


class NoReply(Exception):
    """The browser did not answer a command in time: its page may be in an endless script."""


def installed() -> str:
    """The browser's program, "" where there is none."""
    return next((place for place in PLACES if os.access(place, os.X_OK)), "")


class DevTools:
    """A running browser. `post` may be called from any thread; everything else from the one that made it."""

    def __init__(self, happens: Happening) -> None:
        program = installed()
        if not program:
            raise Failure("cannot_start", "no browser is installed")
        self._happens, self._lock, self._number, self._buffer = happens, threading.Lock(), 0, bytearray()
        self._replies: dict[int, dict[str, Any]] = {}
        self._home = tempfile.mkdtemp(prefix="browser-", dir="/tmp")
        theirs_in, self._out = os.pipe2(os.O_CLOEXEC)
        self._in, theirs_out = os.pipe2(os.O_CLOEXEC)
        # above 3 and 4, which the browser reads and writes
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16) for fd in (theirs_in, theirs_out)]
        broker = os.environ.get("QA_BROKER", BROKER)
        words = [program, *_SWITCHES, f"--proxy-server={broker}", f"--user-data-dir={self._home}"]
        try:
            self._pid = os.posix_spawn(
                program,
                [*words, "about:blank"],
                {"PATH": "/usr/bin:/bin", "HOME": self._home, "LANG": "C.UTF-8"},
                file_actions=[
                    *((os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)),
                    (os.POSIX_SPAWN_DUP2, ends[0], 3),
                    (os.POSIX_SPAWN_DUP2, ends[1], 4),
                ],
                setpgroup=0,
            )
        except OSError as error:
            raise Failure("cannot_start", f"the browser does not start: {error.strerror}") from None
        finally:
            for fd in (theirs_in, theirs_out, *ends):
                os.close(fd)

    def ready(self) -> None:
        """Wait until it answers; a slow start says nothing of a page."""
        try:
            self.ask("Browser.getVersion", within=START_S)
        except NoReply:
            raise Failure("busy", "could not tell: the browser was too slow to start") from None

    def close(self) -> None:
        """End the browser with everything that it started."""
        for kill, target in ((os.killpg, self._pid), (os.kill, self._pid)):
            with suppress(ProcessLookupError):
                kill(target, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._in)
        with self._lock:
            os.close(self._out)
            self._out = -1
        shutil.rmtree(self._home, ignore_errors=True)

    def post(self, method: str, session: str = "", **params: Any) -> int:  # noqa: ANN401  a method's own parameters
        """Send a command without waiting for its reply, which is dropped; its number."""
        with self._lock:
            self._number += 1
            number = self._number
            message = {"id": number, "method": method, "params": params}
            data = memoryview(
                json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0"
            )
            while data and self._out >= 0:
                try:
                    data = data[os.write(self._out, data) :]
                except BrokenPipeError:
                    raise _gone() from None
        return number

    def ask(self, method: str, session: str = "", *, within: float = 5.0, **params: Any) -> dict[str, Any]:  # noqa: ANN401  a method's own parameters
        """The result of a command; events that arrive before it are passed on."""
        number = self.post(method, session, **params)
        self._replies[number] = {}
        try:
            self.listen(within, lambda: bool(self._replies[number]))
            reply = self._replies[number]
        finally:
            del self._replies[number]
        if not reply:
            raise NoReply(method)
        if not isinstance(result := reply.get("result"), dict):
            raise ProtocolError(method)
        return result

    def listen(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Pass events on for this time, or until `enough`."""
        end = time.monotonic() + seconds
        while not enough() and time.monotonic() < end and (message := self._next(end)) is not None:
            number = message.get("id")
            if number in self._replies:
                self._replies[number] = message
            elif isinstance(params := message.get("params"), dict):
                self._happens(str(message.get("method", "")), params)

    def _next(self, end: float) -> dict[str, Any] | None:
        """The next message; None when the time is up."""
        searched = 0
        while (at := self._buffer.find(b"\0", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_MESSAGE:
                raise Failure("too_large", f"the browser said more than {MAX_MESSAGE} bytes at once")
            if not select.select([self._in], [], [], max(end - time.monotonic(), 0))[0]:
                return None
            chunk = os.read(self._in, 1 << 18)
            if not chunk:
                raise _gone()
            self._buffer += chunk
        raw = bytes(self._buffer[:at])
        del self._buffer[: at + 1]
        try:
            message = json.loads(raw)
        except (ValueError, RecursionError):
            message = {}
        return message if isinstance(message, dict) else {}


def _gone() -> Failure:
    return Failure("internal", "the browser ended before its page was judged")
