"""One process per input: the way that fits every program, and the one that the others must agree with."""

from __future__ import annotations

from sandbox.programs import process
from sandbox.programs.process import Ending, ProcessEnd
from sandbox.programs.program import WarmStart
from sandbox.runners.command import Box, CommandLine
from sandbox.runners.keeper import Keeper
from sandbox.runners.port import Execution
from sandbox.runners.standing import Interfered


def wall_s(cpu_s: float) -> float:
    """Seconds that an execution may take in all, for one that sleeps: generous, the machine may be busy."""
    return 1.0 + 3.0 * cpu_s


class Spawner:
    """Executes in the box of whichever runner owns it."""

    def __init__(self, what: CommandLine, box: Box) -> None:
        self._what, self._box, self._argv = what, box, box.argv
        self._keeper = Keeper(self._work)

    def _work(self, stdin: bytes, wall_s: float, cpu_s: float) -> ProcessEnd:
        return process.run(
            self._argv,
            stdin,
            wall_s,
            cpu_s,
            environment=self._what.environment,
            folder=self._box.folder,
            memory=self._what.memory,
        )

    def run(self, source: bytes, cpu_s: float) -> Execution:
        """INTERFERENCE for one that killed, stopped or limited the process that started it."""
        try:
            stdin = self._box.put(source)
            ended = self._keeper.run(stdin, wall_s(cpu_s), cpu_s)
            peak = self._what.memory if ended.ending is Ending.MEMORY else 0
            spent = ended.spent
            return self._box.taken(
                self._what.execution(
                    ended.code,
                    ended.stdout,
                    ended.stderr,
                    hung=not spent.ended,
                    cpu_s=spent.cpu_s,
                    peak=peak,
                )
            )
        except Interfered as how:
            return Execution(Ending.INTERFERENCE, 0, b"", str(how).encode())
        finally:
            self._box.sweep()

    def close(self) -> None:
        self._keeper.close()


class SpawnRunner:
    """`why` says what this is a fallback for, "" when it is what the profile asks for."""

    def __init__(self, what: CommandLine, why: str = "") -> None:
        self._box = Box(what)
        self._spawner = Spawner(what, self._box)
        self.name = WarmStart.SPAWN.value + (f": {why}" if why else "")

    def run(self, source: bytes, cpu_s: float) -> Execution:
        return self._spawner.run(source, cpu_s)

    def close(self) -> None:
        self._spawner.close()
        self._box.close()
