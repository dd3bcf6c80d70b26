"""Ties a program to the life of its parent, then becomes it: `parent_death.py PARENT_PID PROGRAM [ARG]...`.

The kernel sends SIGTERM when the parent ends, even by SIGKILL: the program can still put its state on disk.
A script of its own because a `preexec_fn` runs between fork and exec, which is unsafe in a process with
threads. Standard library only. The signal follows the *thread* that started this: start it from one
that lives as long as the program should.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""prctl(2), from linux/prctl.h; kept across execve of a program without special rights."""

TRY_AGAIN = 75


def end_with(parent: int) -> None:
    """Tie this process to its parent; end it now where the parent is gone already or the kernel refuses."""
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        sys.exit(1)
    if os.getppid() != parent:
        sys.exit(TRY_AGAIN)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
