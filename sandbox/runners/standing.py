"""What a program must leave alone in the process that started it: whether that runs, and its limits."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Mapping

_LIMITS: Mapping[str, int] = {
    name: getattr(resource, name)
    for name in sorted(dir(resource))
    if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"  # NOFILE by another name
}

Standing = Mapping[str, object]
"""Limits by name, processors and priority of one process."""


class Interfered(Exception):
    """The program killed, stopped or limited the process that started it. Carries how, in words."""


def standing(pid: int) -> Standing:
    """How a process stands now; {} for one that is gone."""
    try:
        found: dict[str, object] = {name: resource.prlimit(pid, which) for name, which in _LIMITS.items()}
        found["processors"] = os.sched_getaffinity(pid)
        found["priority"] = os.getpriority(os.PRIO_PROCESS, pid)
    except OSError:
        return {}
    return found


def changed(before: Standing, pid: int) -> str:
    """What was changed of a process, in words; "" for nothing, or one that is gone."""
    now = standing(pid)
    names = [name for name in before if now and now[name] != before[name]]
    return f"changed {', '.join(names)} of the process that started it" if names else ""


def is_stopped(pid: int) -> bool:
    """Whether a child of this process was stopped (SIGSTOP, SIGTSTP) and not continued."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def ended(status: int) -> str:
    """How a child ended that another process ended, by its wait status."""
    if not os.WIFSIGNALED(status):
        return "ended the process that started it"
    number = os.WTERMSIG(status)
    known = {one.value: one.name for one in signal.Signals}
    return f"killed the process that started it ({known.get(number, number)})"
