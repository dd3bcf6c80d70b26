"""Opening what hostile code may have arranged: never through a link, never out of the directory."""

from __future__ import annotations

import ctypes
import errno
import os

_SYS_OPENAT2 = 437  # the same on x86_64 and aarch64
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_LIBC = ctypes.CDLL(None, use_errno=True)
_RESOLVE = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(directory: int, name: bytes, flags: int) -> int:
    """`openat2` that resolves strictly below `directory` on its file system; OSError if it cannot."""
    if b"\0" in name:
        raise OSError(errno.EINVAL, "NUL in a name", name)
    how = _How(flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0, _RESOLVE)
    fd: int = _LIBC.syscall(
        _SYS_OPENAT2, directory, ctypes.c_char_p(name), ctypes.byref(how), ctypes.sizeof(how)
    )
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return fd
