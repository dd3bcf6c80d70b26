"""The interfaces of a campaign's parts: sources of inputs, verdicts, defects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Protocol

from sandbox.judging.port import KINDS, ExecutionVerdict
from sandbox.programs.program import Program
from sandbox.runners.port import Execution
from sandbox.spec import OneOf

ROUND_ENDS = ("time", "executions", "dry", "full", "broken")
"""Why a round ends."""
MOST_DEFECTS = 16
"""Of one round, which is full then."""
WORDS = 300
"""Characters of a signature, message or place."""


class Enough(Exception):
    """Raised by the predicate of a shrink to end it with what it has."""


Judge = Callable[[Program, bytes, Execution], ExecutionVerdict]
"""The program, the input, its execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproducer:
    """A minimal input that shows a defect; `variant` is the second input of a pair, or "". `seen` counts the
    inputs that showed it, `from_size` is the size of the first in bytes; `origin` the strategy that made it.
    `minimal` is False for one whose shrink was cut short.
    """

    signature: str
    """What names the defect: kind, message and place."""
    kind: Annotated[str, OneOf(KINDS)]
    """Kind of failure."""
    said: str
    """Its message, numbers folded."""
    place: str
    """Where in the program, if it said so."""
    source: str
    """The minimal input."""
    variant: str = ""
    """The second input of a pair; empty for one input."""
    size: int = 0
    """[bytes] Size of the minimal input."""
    from_size: int = 0
    """[bytes] Size of the first input that showed it."""
    seen: int = 1
    """Inputs that showed it."""
    origin: str = ""
    """The strategy that made it."""
    minimal: bool = True
    """Whether shrinking was finished."""


class InputSource(Protocol):
    """One strategy that makes inputs."""

    def __call__(self, corpus: Sequence[bytes], chance: Random, /) -> bytes | None:
        """A new input from the corpus; None when it has none to make of it. The same for the same chance."""


class Shrink(Protocol):
    """Cuts an input to a local minimum."""

    def __call__(self, source: bytes, still: Callable[[bytes], bool]) -> bytes:
        """The smallest input found for which `still` holds; `still` may raise Enough."""
