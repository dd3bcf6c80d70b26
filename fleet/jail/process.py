"""Processes by identity, not by number: a pid alone may belong to someone else by now."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
from dataclasses import dataclass
from pathlib import Path

_GET_INFO = 0xC040FF0B  # PIDFD_GET_INFO, _IOWR(0xFF, 11, 64 bytes): linux/pidfd.h
_INFO = struct.Struct("=Q52xi")  # struct pidfd_info, version 0: mask first, exit_code last
_INFO_EXIT = 1 << 3


@dataclass(frozen=True, slots=True)
class ProcStat:
    """From `/proc/<pid>/stat` (proc(5)): state letter, parent, and start in clock ticks since boot."""

    state: str
    parent: int
    start: int


def proc_stat(pid: int) -> ProcStat | None:
    """Read a process's state, parent and start time; None when it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name before it may hold anything
    return ProcStat(state=fields[0].decode(), parent=int(fields[1]), start=int(fields[19]))


def own_start() -> int:
    """Start time of this process; distinguishes it from a later one with the same pid."""
    stat = proc_stat(os.getpid())
    return stat.start if stat else 0


def boot_id() -> str:
    """Boot id: start times of another boot are meaningless."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def is_process(pid: int, start: int, boot: str) -> bool:
    """Whether the process that had this pid, start and boot is alive."""
    stat = proc_stat(pid)
    return boot == boot_id() and stat is not None and stat.start == start and stat.state not in "ZX"


def open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def is_running(pidfd: int) -> bool:
    """Whether the process has not ended yet: a pidfd becomes readable when it does."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return not poller.poll(0)


def exit_code(pidfd: int) -> int | None:
    """How a process that was reaped, by whomever, ended: its status as a shell gives it.

    None before that, and always on a kernel before 6.15.
    """
    try:
        found = fcntl.ioctl(pidfd, _GET_INFO, _INFO.pack(_INFO_EXIT, 0))
    except OSError:
        return None
    mask, status = _INFO.unpack(found)
    if not mask & _INFO_EXIT:
        return None
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def kill(pidfd: int) -> None:
    """SIGKILL exactly this process; a dead one is fine."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return
