"""A program whose executions a test states: no process, and processor time that only it counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from sandbox.fuzz.anomalies import Anomalies
from sandbox.fuzz.loop import Search
from sandbox.fuzz.port import InputSource
from sandbox.fuzz.relate import Relation
from sandbox.fuzz.shrink import shrinker
from sandbox.fuzz.trials import Bounds, Trials
from sandbox.judging.verdict import judge
from sandbox.programs.process import Ending
from sandbox.programs.program import Program
from sandbox.runners.port import Execution

PROGRAM = Program(command=("cc",), output="text", sample="a", tool_chain="python")


def ended(
    cpu_s: float = 0.001, out: bytes = b"", code: int = 0, err: bytes = b"", peak: int = 0
) -> Execution:
    ending = Ending.ACCEPTED if code == 0 else Ending.CLEAN_ERROR if code == 1 else Ending.PANIC
    return Execution(ending, code, out, err, cpu_s, peak)


def endless(where: str) -> Execution:
    return Execution(Ending.HANG, -9, b"", b"", 1e9, where=where)


class ScriptedRunner:
    """What takes longer than its limit ends there, at the place that it names. `limits` has those of all."""

    name = "scripted"

    def __init__(self, does: Callable[[bytes], Execution]) -> None:
        self._does = does
        self.limits: list[tuple[bytes, float]] = []

    def run(self, source: bytes, cpu_s: float) -> Execution:
        self.limits.append((source, cpu_s))
        done = self._does(source)
        if done.cpu_s <= cpu_s:
            return done
        return Execution(Ending.HANG, -9, b"", b"", cpu_s, where=done.where)

    def close(self) -> None:
        """Nothing runs."""


def search(
    runner: ScriptedRunner,
    *,
    strategy: InputSource = lambda corpus, chance: None,
    relations: Sequence[Relation] = (),
    executions: int = 300,
    known: Sequence[str] = (),
    program: Program = PROGRAM,
    around: Callable[[bytes, Random], bytes | None] | None = None,
) -> Search:
    trials = Trials(program, "compiler", runner, judge, Bounds(60.0, executions))
    trials.calibrate(program.sample.encode())
    return Search(
        trials=trials,
        anomalies=Anomalies(trials, shrinker("compiler"), frozenset(known)),
        strategies={"one": strategy},
        relations=relations,
        chance=Random(1),
        around=around,
    )
