"""Crash points: the place where a test kills the process with SIGKILL, and nothing else.

Every committed journal write is one step. `QA_CRASH_AT=7` kills this process right after the seventh;
`QA_CRASH_COUNT=<file>` writes the number of steps so far, so that a test can first count a clean run
and then die at each of them. `QA_CRASH_BEFORE=7` dies right before the seventh write begins, when what it
would record has happened already. All are unset in production, where a step costs three look-ups.
"""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

_steps = itertools.count(1)
_begun = itertools.count(1)


def about() -> None:
    """A durable step is about to be taken."""
    if os.environ.get("QA_CRASH_BEFORE") == str(next(_begun)):
        os.kill(os.getpid(), signal.SIGKILL)


def step(name: str) -> None:
    """One durable step was taken; `name` is what a person reads in the count file (`12 run.claim`)."""
    number = next(_steps)
    if target := os.environ.get("QA_CRASH_COUNT"):
        Path(target).write_text(f"{number} {name}\n", encoding="utf-8")
    if os.environ.get("QA_CRASH_AT") == str(number):
        os.kill(os.getpid(), signal.SIGKILL)
