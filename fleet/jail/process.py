"""Processes by identity, not by number: a pid alone may belong to someone else by now."""

from __future__ import annotations

import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path


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


def boot_id() -> str:
    """Boot id: start times of another boot are meaningless."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


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


def kill(pidfd: int) -> None:
    """SIGKILL exactly this process; a dead one is fine."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return
