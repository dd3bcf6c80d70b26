"""Python programs: imported once, then forked for each input, or served in process as long as nothing is new.

In process (python_warm.py, a worker) an input costs what the program itself costs. What a worker says is
taken only for a way of ending that a fresh fork has shown as well, and is compared with a fork again now and
then: state that one input leaves for the next shows there, and the worker is then used no more.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from sandbox.programs.process import Ending
from sandbox.programs.program import WarmStart
from sandbox.runners import python_stack
from sandbox.runners.command import Box, CommandLine
from sandbox.runners.port import Execution
from sandbox.runners.served import FORK, IN_PROCESS, ServedRunner, variables
from sandbox.runners.server import ServerLost, ServerProcess, StandardStreams, children

LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_warm.py")
COMPARED_EVERY = 500
"""Executions of a worker between two that a fork repeats."""
COVERED_EVERY = 1 if sys.version_info >= (3, 12) else 16
"""Of executions, one in this many says which places it passed: before Python 3.12 every call is traced, and
it takes three times as long; later ones report each place once (sys.monitoring)."""
MOST_DISTURBED = 3
"""Workers that may turn out to be disturbed before none is used any more."""
SOUND = (Ending.ACCEPTED, Ending.CLEAN_ERROR)
"""Endings that tell whether an earlier input disturbed a worker. A failure does not: where a recursion ends,
and what is said of it, depends on how deep the stack was before it."""

_TRACE = b"Traceback (most recent call last):\n"
_WITH_VALUE = ("-W", "-X")


class PythonProcess(ServerProcess):
    """A server whose executions say where they are before they are stopped."""

    def _stop_execution(self) -> None:
        python_stack.ask(children(self.pid), self._streams.complained)
        super()._stop_execution()


class PythonRunner(ServedRunner):
    """ServerLost says why the command, or its entry, cannot be imported once."""

    def __init__(self, what: CommandLine, entry: str) -> None:
        flags, program = split(what.argv)
        head = (*flags, LAUNCHER, entry)

        def launch(box: Box, streams: StandardStreams) -> ServerProcess:
            arguments = box.argv[len(what.argv) - len(program) :]
            streams.fill(b"")
            try:
                argv = (sys.executable, *head, *arguments)
                return PythonProcess(argv, variables(what), box.folder, streams, what.memory)
            except ServerLost as lost:
                said = streams.said()[1].decode("utf-8", "replace").strip().splitlines()
                raise ServerLost(said[-1][:200] if said else str(lost)) from None

        super().__init__(what, launch, WarmStart.PYTHON.value)
        self._trusted: set[int] = set()
        self._since = 0
        self._disturbed = 0

    def run(self, source: bytes, cpu_s: float) -> Execution:
        self._since += 1
        covers = self._since % COVERED_EVERY == 0
        fork = FORK[covers : covers + 1]
        if self._disturbed >= MOST_DISTURBED:
            return self.ordered(fork, source, cpu_s)
        way = 0
        with contextlib.suppress(ServerLost):
            done, way = self.tried(IN_PROCESS[covers : covers + 1], source, cpu_s)
            if done.ending is Ending.HANG:
                return done  # its worker is gone: that it repeats shows in another one
        compares = self._since >= COMPARED_EVERY
        if way in self._trusted and not compares:
            return done
        fresh = self.ordered(fork, source, cpu_s)
        if way and _same(done, fresh):
            self._trusted.add(way)
        elif way and fresh.ending in SOUND and _same(self.ordered(fork, source, cpu_s), fresh):
            # an execution in process ended unlike two in fresh forks: an input before it changed something
            self._trusted.clear()
            self.restart()
            self._disturbed += 1
            if self._disturbed == MOST_DISTURBED:
                self.name += ": a fork for each input, since inputs in one process disturb each other"
        if compares:
            self._since = 0
        return fresh

    def stopped(self, stderr: bytes) -> tuple[bytes, str]:
        return python_stack.split(stderr)


def split(argv: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """An interpreter's flags, and what it runs: `-m` and a module or a script, and the arguments."""
    if argv[0] != sys.executable:
        raise ServerLost("the command is not started by `{python}`")
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] not in ("-", "-c", "-m"):
        at += 2 if argv[at] in _WITH_VALUE else 1
    if at >= len(argv) or argv[at] in ("-", "-c"):
        raise ServerLost("the command names no module or script")
    return list(argv[1:at]), argv[at:]


def _same(one: Execution, other: Execution) -> bool:
    """Whether two ended alike, with the same output and the same last trace, or else the same last line: what
    a program says once in a process, such as a warning, stands before."""
    first, second = ((done.ending, done.code, done.stdout, _told(done.stderr)) for done in (one, other))
    return first == second


def _told(stderr: bytes) -> bytes:
    _, traced, said = stderr.rpartition(_TRACE)
    return said if traced else said.rstrip().rpartition(b"\n")[2]
