"""Run by the jail's interpreter: becomes the given program, which cannot signal what started it.

    python -I -S fenced.py PROGRAM [arguments]

Where the kernel has no Landlock it can. What it leaves behind comes to it, for its runner to end.
"""

from __future__ import annotations

import ctypes
import os
import sys

_REAPER, _NO_NEW_PRIVS = 36, 38
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_SCOPED = 0b11  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL, ABI 6


def fence() -> None:
    """Keep this process and its descendants from signalling any other; what they leave behind comes to it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_REAPER, 1, 0, 0, 0)
    attributes = (ctypes.c_uint64 * 3)(0, 0, _SCOPED)
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    if rules >= 0:
        libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.syscall(_RESTRICT_SELF, rules, 0)
        os.close(rules)


def main() -> None:
    fence()
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
