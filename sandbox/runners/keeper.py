"""A process of our own between a runner and one process per input.

A target that kills its parent kills this one, not the round; what it leaves behind comes to this process,
which ends it before the next. Landlock, where the kernel has it, keeps signals of both away from the round.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn

from sandbox.errors import Failure
from sandbox.programs.process import ProcessEnd
from sandbox.runners.fenced import fence
from sandbox.runners.server import ServerLost, children

_GRACE_S = 15.0

Work = Callable[[bytes, float], ProcessEnd]
"""Standard input and a limit of processor time; how the process ended."""


class Keeper:
    """Does `work` in a process of its own, which is started again when it is lost."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._pid = 0
        self._line: Connection[Any, Any] | None = None

    def run(self, stdin: bytes, cpu_s: float, wall_s: float) -> ProcessEnd:
        """ServerLost when the process was killed; Failure as `process.run` has it."""
        line = self._line or self._start()
        try:
            line.send((stdin, cpu_s))
            if not line.poll(wall_s + _GRACE_S):
                raise EOFError
            said = line.recv()
        except (EOFError, OSError):
            self.close()
            raise ServerLost("the process that started it was killed") from None
        if isinstance(said, Failure):
            raise said
        end: ProcessEnd = said
        return end

    def _start(self) -> Connection[Any, Any]:
        ours, theirs = Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(theirs, self._work)
        theirs.close()
        self._line = ours
        return ours

    def close(self) -> None:
        if self._line is None:
            return
        for pid in (*children(self._pid), self._pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        os.waitpid(self._pid, 0)
        self._line.close()
        self._line = None


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
            stdin, cpu_s = line.recv()
            try:
                said: ProcessEnd | Failure = work(stdin, cpu_s)
            except Failure as failure:
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
