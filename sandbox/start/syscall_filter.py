"""Gives this process, and all that it starts, one more system call filter."""

from __future__ import annotations

import ctypes
import os

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_MODE_FILTER = 2
_INSTRUCTION = 8  # bytes of a struct sock_filter


class _Program(ctypes.Structure):
    """`struct sock_fprog` (seccomp(2))."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(program: bytes) -> None:
    """Install `program`, the array that `fleet.jail.seccomp` makes; OSError when the kernel refuses it.

    It adds to the filters that are there: the strictest answer of them all holds.
    """
    held = ctypes.create_string_buffer(program, len(program))
    whole = _Program(len(program) // _INSTRUCTION, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(whole), 0, 0))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
