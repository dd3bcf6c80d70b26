"""One round of a search in one jail: many executions of the platform's compiler, or of its loader."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.fuzz.port import Defect
from sandbox.tools.base import ToolAnswer

MOST_SECONDS = 60.0
MOST_EXECUTIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Args:
    """`part` is `compiler` (inputs are text) or `loader` (inputs are hex).

    `corpus` are inputs to start from: what earlier rounds returned, the most valuable first. `known` are
    signatures of defects that need no other example. `grammar` is a table of productions (see
    sandbox/fuzz), "" for none. A round with the same arguments on the same program asks the same inputs, as
    far as its time reaches.
    """

    part: str = "compiler"
    seed: int = 0
    seconds: float = 20.0
    executions: int = 100_000
    corpus: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    grammar: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`runner` names how executions shared the program's start, and why it is a fallback; `stopped` says why
    the round ended: `time`, `executions`, `dry` or `broken`.

    `corpus` are new inputs whose behaviour was new (text, or hex), `behaviours` how many were; `shrinking`
    are the executions spent on shrinking, part of `executions`.
    """

    runner: str = ""
    stopped: str = ""
    executions: int = 0
    accepted: int = 0
    shrinking: int = 0
    behaviours: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    defects: tuple[Defect, ...] = ()
    corpus: tuple[str, ...] = ()
