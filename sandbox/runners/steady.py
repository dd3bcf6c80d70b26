"""Python programs whose failures say nothing of a worker's state."""

from __future__ import annotations

from sandbox.programs.process import Ending
from sandbox.runners.port import Execution
from sandbox.runners.python import PythonRunner


class SteadyPythonRunner(PythonRunner):
    """A fork that fails itself does not prove that an earlier input disturbed the worker: where a recursion
    ends, and what is said of it, depends on how deep the stack was before it. Without this a compiler that
    recurses too deeply on three inputs costs a fork for each input from then on."""

    def ordered(self, order: bytes, source: bytes, cpu_s: float) -> Execution:
        self._forked = super().ordered(order, source, cpu_s)
        return self._forked

    def _disturb(self) -> None:
        if self._forked.ending in (Ending.ACCEPTED, Ending.CLEAN_ERROR):
            super()._disturb()
