"""Where a Python program is that does not end: its stack, asked for a few times by a signal.

The program's process answers with faulthandler (python_warm.py) on its standard error.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable

from sandbox.text import clean

SAMPLES = 6
PAUSE_S = 0.006
"""Stacks that are asked for, and seconds between two: what the loop calls differs, the loop is in all."""
ANSWER_S = 2.0
"""Seconds that an answer may take on a busy machine. One that gives none is asked once."""
LONGEST = 200
"""Characters of a place."""
_HEADER = b"Stack (most recent call first):\n"
_FRAME = re.compile(rb'^  File "([^"\n]{1,400})", line \d{1,9} in ([^\n]{1,200})$', re.M)
_OURS = (b"python_warm.py", b"python_target.py")


def ask(pids: list[int], said: Callable[[], int]) -> None:
    """Have each of these processes write its stacks; `said` is how many bytes they have written."""
    for _ in range(SAMPLES):
        before, end = said(), time.monotonic() + ANSWER_S
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGUSR2)
        time.sleep(PAUSE_S)
        while said() == before:
            if time.monotonic() >= end:
                return
            time.sleep(PAUSE_S)


def split(stderr: bytes) -> tuple[bytes, str]:
    """What the program itself said, and the innermost function that is in every stack, as `file:name`; ""
    when there is none. Of several the last does not count: its process may have been ended while it wrote."""
    said, *answers = stderr.split(_HEADER)
    found = [
        frames for one in answers[:-1] or answers if (frames := _FRAME.findall(one)) and not _ours(frames[0])
    ]
    common = set(found[0]).intersection(*found) if found else set()
    for frame in found[0] if found else ():
        if frame in common and not _ours(frame):
            return said, clean(
                b":".join((os.path.basename(frame[0]), frame[1])).decode("utf-8", "replace"), LONGEST
            )
    return said, ""


def _ours(frame: tuple[bytes, bytes]) -> bool:
    return os.path.basename(frame[0]) in _OURS
