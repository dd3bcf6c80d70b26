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


def main(argv: list[str]) -> int:
    """Returns only when the parent is gone already or the kernel refuses."""
    parent, program = int(argv[1]), argv[2]
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) != 0:
        return 1
    if os.getppid() != parent:
        return TRY_AGAIN
    os.execv(program, argv[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
