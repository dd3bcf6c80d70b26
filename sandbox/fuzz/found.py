"""One defect of a round, from the first input that showed it to the smallest."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.fuzz.relate import Relation
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.process import Ending


@dataclass(slots=True)
class Found:
    """One defect: the first input that showed it, the smallest one, and how it was seen. `spent` counts
    executions of its shrink."""

    verdict: ExecutionVerdict
    first: bytes
    origin: str
    relation: Relation | None = None
    source: bytes = b""
    variant: bytes = b""
    cpu_s: float = 0.0
    seen: int = 1
    spent: int = 0
    minimal: bool = False

    @property
    def hangs(self) -> bool:
        return self.verdict.kind == Ending.HANG.value

    @property
    def slow(self) -> bool:
        """One whose executions take long: it is shrunk last."""
        return self.hangs or self.verdict.kind == Ending.MEMORY.value
