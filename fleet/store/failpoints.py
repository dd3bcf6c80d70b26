"""Failpoints: the places where a test kills this process or stops it, and nothing else.

Every committed journal write is one step. `QA_CRASH_AT=7` kills this process right after the seventh;
`QA_CRASH_COUNT=<file>` writes the number of steps so far, so that a test can first count a clean run
and then die at each of them. `QA_CRASH_BEFORE=7` dies right before the seventh write begins, when what it
would record has happened already.

A stop (SIGSTOP) can also fall inside a transaction, and between two writes where something leaves the
process: these points have names. `QA_STOP_TRACE=<file>` lists the points passed, `QA_STOP_AT` names one of
them with its count: `in finding.claim#1`. All are unset in production, where a step costs a few look-ups.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter
from pathlib import Path

_steps = itertools.count(1)
_begun = itertools.count(1)
_passed: Counter[str] = Counter()


def about(name: str) -> None:
    """A durable step is about to be taken."""
    if os.environ.get("QA_CRASH_BEFORE") == str(next(_begun)):
        os.kill(os.getpid(), signal.SIGKILL)
    point(f"before {name}")


def step(name: str) -> None:
    """One durable step was taken; `name` is shown in the count file (`12 run.claim`)."""
    number = next(_steps)
    if target := os.environ.get("QA_CRASH_COUNT"):
        Path(target).write_text(f"{number} {name}\n", encoding="utf-8")
    if os.environ.get("QA_CRASH_AT") == str(number):
        os.kill(os.getpid(), signal.SIGKILL)
    point(f"after {name}")


def point(name: str) -> None:
    """A named point for a pause."""
    at, trace = os.environ.get("QA_STOP_AT"), os.environ.get("QA_STOP_TRACE")
    if not at and not trace:
        return
    _passed[name] += 1
    if trace:
        with Path(trace).open("a", encoding="utf-8") as file:
            file.write(f"{name}#{_passed[name]}\n")
    if at == f"{name}#{_passed[name]}":
        os.kill(os.getpid(), signal.SIGSTOP)
