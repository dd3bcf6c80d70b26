"""The executions of one round: counted, bounded, and judged."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from sandbox.fuzz.port import Enough, Judge
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.process import Ending
from sandbox.programs.program import OutputKind, Program
from sandbox.runners.port import Execution, Runner

SLOW = 5
"""How many times the processor time of the slowest sound execution of its size an execution may have."""
FORGOTTEN = 0.95
"""What is left of that time with each sound execution of the size. One counts as slow as the one before it
allows: the first ones import what all need, and some are forked and traced."""
LEAST_CPU_S, MOST_CPU_S = 0.06, 5.0
"""Bounds of that time; the upper one is what a single call gives by default."""
HURRY_CPU_S = 0.03
"""The lower bound once hangs have taken their share, and while something else is shrunk."""
PATIENCE = 8
"""How many times its limit an execution that reached it may have when it is repeated."""
SURE, LEAST_SURE_S = 40, 1.0
"""What it must have used at last for a hang: this many times the slowest sound one of its size, and this many
seconds, MOST_CPU_S at most."""
HANG_SHARE = 0.2
"""Of the round's time, for executions that end at a limit, of time or of memory."""
DEAR_S = 0.02
"""Processor time below which an execution costs no more than another: it varies from run to run."""
CHEAPEST = 1 / 8
WALL_PER_CPU = 3.0
"""Seconds that a runner gives an execution for each second of processor time."""
LEAST_LEFT_S = 0.2
CORES = 2
"""Processors that a round may keep busy."""


class RoundOver(Enough):
    """A bound of the round was reached: `time` or `executions`."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one round. Processor time is bounded by the seconds, on CORES processors."""

    seconds: float
    executions: int


class Trials:
    """Executes inputs one after another, until a bound; then RoundOver.

    Failure when the program cannot be executed (any more).
    """

    def __init__(self, program: Program, part: str, runner: Runner, judge: Judge, bounds: Bounds) -> None:
        self.program = seen_as(program, part)
        self._runner, self._judge, self._bounds = runner, judge, bounds
        self._began = time.monotonic()
        self._end = self._began + bounds.seconds
        self.executions = self.accepted = self.lost = 0
        self.cpu_s = self.hang_s = 0.0
        self.hangs: set[str] = set()
        """Signatures of hangs, and of endings for want of memory, that need no second look."""
        self._greedy: dict[str, ExecutionVerdict] = {}
        """By the signature of the hang that an execution looked like, what it then ran out of memory with."""
        self._slowest, self._last = [0.0] * 64, [0.0] * 64
        self._usual = 0.0

    @property
    def seconds(self) -> float:
        """Since the round began."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        return self._end - time.monotonic()

    def grant(self, seconds: float) -> None:
        """Give the round this many seconds from now, for what it must still finish."""
        self._end = time.monotonic() + seconds
        self._bounds = replace(self._bounds, seconds=self._bounds.seconds + seconds)

    @property
    def hurried(self) -> bool:
        """Whether hangs have taken their share of the time so far."""
        return self.hang_s > HANG_SHARE * max(self.seconds, 1.0)

    def calibrate(self, sample: bytes) -> None:
        """Learn what a good input costs."""
        self._usual = min(self.run(sample, MOST_CPU_S)[1].cpu_s for _ in range(3))

    def limit_s(self, size: int) -> float:
        """Processor time of an execution on `size` bytes: what sound ones of at most that size need."""
        short = self.short_s(size)
        return short if self.hurried else max(short, LEAST_CPU_S)

    def short_s(self, size: int) -> float:
        """The same in a hurry."""
        return min(max(SLOW * self._slow(size), HURRY_CPU_S), MOST_CPU_S)

    def sure_s(self, size: int) -> float:
        """The processor time after which nothing but a hang is likely, as far as the round's time reaches."""
        enough = min(max(SURE * self._slow(size), LEAST_SURE_S), MOST_CPU_S)
        return max(min(enough, self.left_s / WALL_PER_CPU), LEAST_LEFT_S)

    def _slow(self, size: int) -> float:
        return max(self._slowest[: size.bit_length() + 1])

    def run(self, source: bytes, cpu_s: float = 0.0) -> tuple[ExecutionVerdict, Execution]:
        """One execution with its verdict; `cpu_s` replaces its limit. One that reaches the round's own limit
        is repeated with PATIENCE, unless it is where others hang, or run out of memory later."""
        verdict, done = self._once(source, cpu_s)
        if done.ending is Ending.HANG and not cpu_s:
            usual = self._greedy.get(verdict.signature)
            if usual is not None and usual.signature in self.hangs:
                verdict = usual
            elif verdict.signature not in self.hangs or not (verdict.place or self.hurried):
                first = verdict
                verdict, done = self._once(source, min(PATIENCE * self.limit_s(len(source)), MOST_CPU_S))
                if done.ending is Ending.MEMORY and first.place:
                    self._greedy[first.signature] = verdict
                if verdict.sound:
                    self._took(len(source), done.cpu_s)
        self.accepted += verdict.kind == "accepted"
        return verdict, done

    def price(self, verdict: ExecutionVerdict, most: int) -> int:
        """As how many inputs one counts that shows what is known. What ends at a limit where others are known
        to, is dear; once that has had its share of the time one counts as `most`."""
        dear = verdict.kind in (Ending.HANG.value, Ending.MEMORY.value) and verdict.place
        if not dear or verdict.signature not in self.hangs:
            return 1
        return most if self.hurried else 2

    def cost(self, cpu_s: float) -> float:
        """How many executions of the sample take this time, as a power of two; where the sample takes little,
        less costs as much."""
        times = cpu_s / max(self._usual, DEAR_S)
        least = CHEAPEST if self._usual >= DEAR_S else 1.0
        return max(2.0 ** math.floor(math.log2(max(times, CHEAPEST))), least)

    def _once(self, source: bytes, cpu_s: float) -> tuple[ExecutionVerdict, Execution]:
        done = self.by(self._runner, source, cpu_s)
        verdict = self._judge(self.program, source, done)
        if done.ending is Ending.HANG:
            verdict = replace(verdict, place=done.where)
        elif verdict.sound:
            at = len(source).bit_length()
            before, self._last[at] = self._last[at], done.cpu_s
            self._took(len(source), min(before, done.cpu_s))
        return verdict, done

    def _took(self, size: int, cpu_s: float) -> None:
        """A sound execution on that many bytes needed this time."""
        at = size.bit_length()
        self._slowest[at] = max(self._slowest[at] * FORGOTTEN, cpu_s)

    def by(self, runner: Runner, source: bytes, cpu_s: float = 0.0) -> Execution:
        """One execution of this runner, within the same bounds."""
        if self.left_s <= 0 or self.cpu_s >= CORES * self._bounds.seconds:
            raise RoundOver("time")
        if self.executions >= self._bounds.executions:
            raise RoundOver("executions")
        self.executions += 1
        limit, left = cpu_s or self.limit_s(len(source)), max(self.left_s / WALL_PER_CPU, LEAST_LEFT_S)
        began = time.monotonic()
        done = runner.run(source, min(limit, left))
        self.cpu_s += done.cpu_s
        self.lost += done.ending in (Ending.INTERFERENCE, Ending.UNKNOWN)
        if done.ending in (Ending.HANG, Ending.MEMORY):
            self.hang_s += time.monotonic() - began
        if done.ending is Ending.HANG and left < limit:
            raise RoundOver("time")
        return done


def seen_as(program: Program, part: str) -> Program:
    """What a judge goes by: a loader is a program that makes nothing of its input."""
    if part == "compiler":
        return program
    return replace(
        program, command=program.loader, other=(), entries=(), output=OutputKind.NONE.value, sample=""
    )
