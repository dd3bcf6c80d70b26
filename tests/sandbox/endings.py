"""How a program may end, and the traces that it prints, for tests of what is said of it."""

from __future__ import annotations

from sandbox.programs.process import Ending
from sandbox.programs.program import Program
from sandbox.runners.port import Execution

PYTHON, JAVASCRIPT = Program(tool_chain="python"), Program(tool_chain="javascript")
TRACEBACK = "Traceback (most recent call last):\n"


def ended(code: int, stderr: str = "", stdout: bytes = b"", ending: Ending | None = None) -> Execution:
    usual = {0: Ending.ACCEPTED, 1: Ending.CLEAN_ERROR}.get(code, Ending.PANIC if code > 0 else Ending.CRASH)
    return Execution(ending or usual, code, stdout, stderr.encode())


def frame(file: str, name: str, line: int = 7) -> str:
    return f'  File "/opt/site/{file}", line {line}, in {name}\n    x()\n'


def recursion(depth: int, on_top: str = "") -> Execution:
    cycle = frame("parse.py", "expr") + frame("parse.py", "term") + frame("visit.py", "visit")
    return ended(
        1, TRACEBACK + frame("cli.py", "main") + cycle * depth + on_top + "RecursionError: maximum\n"
    )
