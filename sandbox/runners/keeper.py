"""A process of our own between a runner and one process per input.

A target that kills its parent kills this one, not the round; what it leaves behind comes to this process,
which ends it before the next. Landlock, where the kernel has it, keeps signals of both away from the round.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn

from sandbox.errors import Failure, JailBroken
from sandbox.programs.process import ProcessEnd
from sandbox.runners.fenced import fence
from sandbox.runners.server import children
from sandbox.runners.standing import Interfered, Standing, changed, ended, is_stopped, standing

_GRACE_S = 15.0
_LOOK_S = 0.25
"""Seconds between two looks at whether it was stopped."""
STOPPED = "stopped the process that started it"

Work = Callable[[bytes, float, float], ProcessEnd]
"""Standard input and limits of time and of processor time, in seconds; how the process ended."""


class Keeper:
    """Does `work` in a process of its own, which is started again when it is lost."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._pid = 0
        self._line: Connection[Any, Any] | None = None
        self._standing: Standing = {}

    def run(
        self, stdin: bytes, wall_s: float, cpu_s: float, beside: Callable[[], None] = lambda: None
    ) -> ProcessEnd:
        """Interfered when the process was killed, stopped or limited; what `work` raises. `beside` is done
        here meanwhile."""
        line = self._line or self._start()
        try:
            line.send((stdin, wall_s, cpu_s))
            beside()
            how = self._await(line, wall_s + _GRACE_S)
            said: Any = None if how else line.recv()
        except (EOFError, OSError):
            raise Interfered(ended(self.close())) from None
        if how := how or changed(self._standing, self._pid):
            self.close()
            raise Interfered(how)
        if isinstance(said, Exception):
            raise said
        end: ProcessEnd = said
        return end

    def _await(self, line: Connection[Any, Any], seconds: float) -> str:
        """Wait for an answer; why none comes, "" when it is there. EOFError after `seconds`."""
        end = time.monotonic() + seconds
        while not line.poll(_LOOK_S):
            if is_stopped(self._pid):
                return STOPPED
            if time.monotonic() > end:
                raise EOFError
        return ""

    def _start(self) -> Connection[Any, Any]:
        ours, theirs = Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(theirs, self._work)
        theirs.close()
        self._standing = standing(self._pid)
        self._line = ours
        return ours

    def close(self) -> int:
        """End it; the wait status of what had ended by itself, else of the end."""
        if self._line is None:
            return 0
        for pid in (*children(self._pid), self._pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        _, status = os.waitpid(self._pid, 0)
        self._line.close()
        self._line = None
        return status


def _serve(line: Connection[Any, Any], work: Work) -> NoReturn:
    """Forked from a guest: takes nothing of it but `line`."""
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.closerange(3, line.fileno())
        os.closerange(line.fileno() + 1, 1 << 16)
        fence()
        while True:
            stdin, wall_s, cpu_s = line.recv()
            try:
                said: ProcessEnd | Exception = work(stdin, wall_s, cpu_s)
            except (Failure, JailBroken, OSError) as failure:
                said = failure
            _end_orphans()
            line.send(said)
    except BaseException:
        os._exit(1)


def _end_orphans() -> None:
    """Kill and reap until nothing is left."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(-1, 0)
