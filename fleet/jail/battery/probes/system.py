"""Raw system calls for probes, by the numbers of the machine they run on."""

from __future__ import annotations

import ctypes
import os
import platform

_X86 = platform.machine() == "x86_64"
_LIBC = ctypes.CDLL(None, use_errno=True)

NUMBERS = {
    name: pair[0 if _X86 else 1]
    for name, pair in {
        "ioctl": (16, 29),
        "clone": (56, 220),
        "setpriority": (141, 140),
        "sched_setaffinity": (203, 122),
        "ioprio_set": (251, 30),
        "inotify_add_watch": (254, 27),
        "inotify_init1": (294, 26),
        "prlimit64": (302, 261),
        "ptrace": (101, 117),
        "shmget": (29, 194),
        "personality": (135, 92),
        "pivot_root": (155, 41),
        "mount": (165, 40),
        "umount2": (166, 39),
        "reboot": (169, 142),
        "init_module": (175, 105),
        "mq_open": (240, 180),
        "kexec_load": (246, 104),
        "add_key": (248, 217),
        "keyctl": (250, 219),
        "unshare": (272, 97),
        "perf_event_open": (298, 241),
        "open_by_handle_at": (304, 265),
        "setns": (308, 268),
        "process_vm_readv": (310, 270),
        "memfd_create": (319, 279),
        "bpf": (321, 280),
        "userfaultfd": (323, 282),
        "io_uring_setup": (425, 425),
        "open_tree": (428, 428),
        "fsopen": (430, 430),
        "clone3": (435, 435),
        "pidfd_getfd": (438, 438),
        "mount_setattr": (442, 442),
        "socket": (41, 198),
        "future": (4000, 4000),
    }.items()
}


def call(name: str, *arguments: int | bytes) -> int:
    """Make one system call with 64-bit arguments; OSError when it fails."""
    words = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_ulong(a) for a in arguments]
    result: int = _LIBC.syscall(ctypes.c_long(NUMBERS[name]), *words)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


def raw(number: int) -> None:
    """Make a call by any number and ignore the answer."""
    _LIBC.syscall(ctypes.c_long(number), 0, 0, 0)
