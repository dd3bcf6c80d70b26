"""Executions by a server process, with one process per input where the server cannot say what happened."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from sandbox.errors import Failure
from sandbox.programs import process
from sandbox.programs.process import Ending
from sandbox.programs.starts import interpreter_variables, not_started
from sandbox.runners.command import Box, CommandLine
from sandbox.runners.port import Execution
from sandbox.runners.server import ServedEnd, ServerLost, ServerProcess, StandardStreams
from sandbox.runners.spawn import Spawner, wall_s

PROBE_CPU_S = 10.0
FORK, IN_PROCESS = b"Ff", b"Pp"
"""Orders (python_warm.py), each without and with the places that are passed."""

Launch = Callable[[Box, StandardStreams], ServerProcess]
"""Starts the server of a box; ServerLost when it does not fit the program."""


class ServedRunner:
    """A server's executions. ServerLost from the constructor says why the way does not fit."""

    def __init__(self, what: CommandLine, launch: Launch, name: str) -> None:
        self.name = name
        self.first = b""
        """What a server that is started again executes in process before all else: what that imports, its
        forks need not import each. Empty for programs that are not started so."""
        self._what, self._launch = what, launch
        with contextlib.ExitStack() as stack:
            self.box = Box(what)
            stack.callback(self.box.close)
            self.spawner = Spawner(what, self.box)
            stack.callback(self.spawner.close)
            self._streams = StandardStreams(self.box)
            stack.callback(self._streams.close)
            stack.callback(self.restart)
            self._server: ServerProcess | None = None
            self._server = launch(self.box, self._streams)
            self._stack = stack.pop_all()

    def run(self, source: bytes, cpu_s: float) -> Execution:
        return self.ordered(FORK[:1], source, cpu_s)

    def ordered(self, order: bytes, source: bytes, cpu_s: float) -> Execution:
        """One execution; by a process of its own when the server was lost over it."""
        try:
            return self.tried(order, source, cpu_s)[0]
        except ServerLost:
            return self.spawner.run(source, cpu_s)

    def put(self, source: bytes) -> bytes:
        """Place an input; what standard input is."""
        return self.box.put(source)

    def taken(self, done: Execution) -> Execution:
        """The execution with its output."""
        return self.box.taken(done)

    def tried(self, order: bytes, source: bytes, cpu_s: float) -> tuple[Execution, int]:
        """One execution, and in process a number for its way of ending, 0 for one that is never usual;
        ServerLost when nothing is known of it."""
        try:
            server = self._server or self._start()
            self._streams.fill(self.put(source))
            ended = server.run(order, wall_s(cpu_s), cpu_s)
            way = ended.numbers.pop(0) if order in IN_PROCESS and ended.numbers else 0
            done = self.taken(self._execution(ended))
        except ServerLost:
            self.restart()
            raise
        finally:
            if not self.box.sweep():
                self.restart()  # its working folder is gone
        if self.box.filled or self._streams.burst:
            raise ServerLost("it filled its files, which pipes are not")
        return done, way

    def _execution(self, ended: ServedEnd) -> Execution:
        stdout, stderr = self._streams.said()
        code, where = ended.code, ""
        if ended.hung:
            stderr, where = self.stopped(stderr)
        if code and not ended.hung and (why := not_started(self._what.argv, code, stderr)):
            raise Failure("cannot_start", why)
        done = self._what.execution(code, stdout, stderr, hung=ended.hung, cpu_s=ended.cpu_s, peak=ended.peak)
        if where:
            return replace(done, where=where)
        return replace(done, covered=frozenset(ended.numbers)) if ended.numbers else done

    def stopped(self, stderr: bytes) -> tuple[bytes, str]:
        """Standard error of an execution that was stopped, and the function it was in, "" if unknown."""
        return stderr, ""

    def _start(self) -> ServerProcess:
        try:
            self._server = self._launch(self.box, self._streams)
        except ServerLost as lost:
            raise Failure("cannot_start", f"{self._what.argv[0]} no longer starts: {lost}") from None
        if self.first:
            self._streams.fill(self.put(self.first))
            self._server.run(IN_PROCESS[:1], wall_s(PROBE_CPU_S), PROBE_CPU_S)
        return self._server

    def restart(self) -> None:
        """End the server; the next execution starts another."""
        if self._server:
            self._server.close()
            self._server = None

    def disagreement(self, source: bytes) -> str:
        """What this way says differently from a process of its own, ""; what varies anyway is left out."""
        cold = self.spawner.run(source, PROBE_CPU_S)
        warm = self.run(source, PROBE_CPU_S)
        said = _unlike(cold, warm)
        if not said or cold.ending is Ending.HANG:
            return ""
        again = self.spawner.run(source, PROBE_CPU_S)
        return "" if _unlike(cold, again) == said else said

    def close(self) -> None:
        self._stack.close()


def _unlike(cold: Execution, other: Execution) -> str:
    """How another execution differs from that of a process of its own."""
    if (cold.ending, cold.code) != (other.ending, other.code):
        return f"ended {other.ending} {other.code} where a process of its own ended {cold.ending} {cold.code}"
    if cold.stdout != other.stdout:
        return "standard output differs from that of a process of its own"
    return "" if _last(cold) == _last(other) else "standard error differs from that of a process of its own"


def _last(done: Execution) -> bytes:
    """The last line of standard error: a trace above it names the launcher's frames."""
    return done.stderr.rstrip().rpartition(b"\n")[2]


def variables(what: CommandLine) -> dict[str, str]:
    """A server's environment."""
    return {**process.ENVIRONMENT, **interpreter_variables(what.argv), **what.environment}
