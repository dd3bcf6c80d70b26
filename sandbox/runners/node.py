"""JavaScript programs: one process of Node that compiles one input after another (node_warm.js).

There is no fork: an input that crashes the process is executed again by one of its own, and one that reaches
a limit ends it; the next input starts another.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys

from sandbox.programs.process import Ending
from sandbox.programs.program import WarmStart
from sandbox.runners.command import Box, CommandLine
from sandbox.runners.port import Execution
from sandbox.runners.served import ServedRunner, variables
from sandbox.runners.server import ServedEnd, ServerLost, ServerProcess, StandardStreams

MOST_INPUTS = 1000
"""Inputs of one process before it is replaced, for what it does not give back."""

_HERE = os.path.dirname(os.path.abspath(__file__))
_FENCED = ("-I", "-S", os.path.join(_HERE, "fenced.py"))
_LAUNCHER = os.path.join(_HERE, "node_warm.js")


class NodeProcess(ServerProcess):
    """A server that is itself what executes."""

    def run(self, order: bytes, wall_s: float, cpu_s: float) -> ServedEnd:
        try:
            return super().run(order, wall_s, cpu_s)
        finally:
            self._kill_children()

    def _stop_execution(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)


class NodeRunner(ServedRunner):
    """ServerLost says why the command cannot be served by one process."""

    def __init__(self, what: CommandLine, entry: str) -> None:
        node = what.argv[0]
        if os.path.basename(node) not in ("node", "nodejs"):
            node = shutil.which("node", path=variables(what)["PATH"]) or ""
        if not os.path.exists(node):
            raise ServerLost("node is missing")
        if not os.path.exists(entry):
            raise ServerLost(f"no adapter at {entry or 'warm_entry'}")

        def launch(box: Box, streams: StandardStreams) -> ServerProcess:
            streams.fill(b"")
            try:
                argv = (sys.executable, *_FENCED, node, _LAUNCHER, entry)
                return NodeProcess(argv, variables(what), box.folder, streams, what.memory)
            except ServerLost as lost:
                said = streams.said()[1].decode("utf-8", "replace").strip().splitlines()
                raise ServerLost(next((line for line in said if "Error" in line), str(lost))[:200]) from None

        super().__init__(what, launch, WarmStart.NODE.value)
        self._since = 0

    def put(self, source: bytes) -> bytes:
        self.box.put(source)
        return source

    def taken(self, done: Execution) -> Execution:
        return done

    def run(self, source: bytes, cpu_s: float) -> Execution:
        done = super().run(source, cpu_s)
        self._since += 1
        if done.ending is Ending.HANG or self._since >= MOST_INPUTS:
            self.restart()
            self._since = 0
        return done
