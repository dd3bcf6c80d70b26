"""Whose a container is: by labels, so that the next start finds what a dead daemon left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fleet.jail.process import boot_id, is_process, proc_stat

SPOOL, OWNER = "qa-fleet.spool", "qa-fleet.owner"
_START, _BOOT, _PIDS = "qa-fleet.owner-start", "qa-fleet.boot", "qa-fleet.pids"


def spool_mark(spool: Path) -> str:
    """A spool by its place and its inode: two fleets in containers may use the same path on one engine."""
    place = spool.resolve()
    return f"{place.stat().st_ino}:{place}"


def owner_labels(spool: Path) -> dict[str, str]:
    """The labels of a container that this process makes."""
    own = proc_stat(os.getpid())
    start = own.start if own else 0
    return {
        SPOOL: spool_mark(spool),
        OWNER: str(os.getpid()),
        _START: str(start),
        _BOOT: boot_id(),
        _PIDS: _pid_namespace(),
    }


def is_owned(labels: Mapping[str, str]) -> bool:
    """Whether the process that made this container is alive."""
    pid, start = labels.get(OWNER, ""), labels.get(_START, "")
    if not (pid.isdecimal() and start.isdecimal()):
        return False
    return is_process(int(pid), int(start), labels.get(_BOOT, ""))


def has_dead_owner(labels: Mapping[str, str]) -> bool:
    """Whether that process is certainly gone: it was of this boot and of our pid namespace, and is not there.

    False for one that another user hides, and for that of a fleet in another container.
    """
    pid, start = labels.get(OWNER, ""), labels.get(_START, "")
    seen_from_here = (labels.get(_BOOT), labels.get(_PIDS)) == (boot_id(), _pid_namespace())
    if not (seen_from_here and pid.isdecimal() and start.isdecimal() and int(pid)):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    stat = proc_stat(int(pid))
    return stat is not None and (stat.start != int(start) or stat.state in "ZX")


def _pid_namespace() -> str:
    return os.readlink("/proc/self/ns/pid")
