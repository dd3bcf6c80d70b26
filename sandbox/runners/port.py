"""The interface of every runner: one input in, how the program ended out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sandbox.programs.process import Ending


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution. `code` is the exit status, or minus the signal number; `cpu_s` is its processor time and
    `peak` the bytes it held at most, both 0 where the runner cannot tell.

    HANG only says that a limit was reached: a single call outside decides (programs/hang.py). `covered` are
    the places that the program passed, as numbers that mean the same within one round; empty where it does
    not say. `where` is the function in which an execution was stopped, "" where the runner cannot tell.
    """

    ending: Ending
    code: int
    stdout: bytes
    stderr: bytes
    cpu_s: float = 0.0
    peak: int = 0
    covered: frozenset[int] = frozenset()
    where: str = ""


class Runner(Protocol):
    """Executes one program. What runs in it is hostile: it may write wherever the jail lets it, and kill its
    own runner; then `run` starts it again, or raises Failure `cannot_start`."""

    @property
    def name(self) -> str:
        """The way that is used, in the words of WarmStart, and why when it is a fallback."""

    def run(self, source: bytes, cpu_s: float) -> Execution:
        """Execute on one input, for at most `cpu_s` seconds of processor time."""

    def close(self) -> None:
        """End every process of it."""
