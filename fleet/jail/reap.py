"""One small file per live jail, so that the next start can end jails of a dead daemon.

A jail dies with its daemon (control socket, parent-death signal). This is the safety net for both.
"""

from __future__ import annotations

import json
import os
import select
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.process import boot_id, is_process, kill, open_pidfd, proc_stat
from fleet.jail.rmtree import rmtree

_SUFFIX, _CHECK = ".jail", "selfcheck-"
DOOR = "door-"
"""Prefix of the folder by which a container comes in."""
_END_MS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A jail's PID 1 and its owner, each by pid and start time."""

    pid: int
    start: int
    owner: int
    owner_start: int
    boot: str


def write_record(spool: Path, pid: int) -> Path:
    """Record a live jail of this process; the file is removed with the jail."""
    jail, owner = proc_stat(pid), proc_stat(os.getpid())
    if jail is None or owner is None:
        raise JailError("the jail ended while it was being made")
    record = Record(pid=pid, start=jail.start, owner=os.getpid(), owner_start=owner.start, boot=boot_id())
    path = spool / f"{pid}-{jail.start}{_SUFFIX}"
    try:
        path.write_text(json.dumps(asdict(record)), encoding="utf-8")
    except OSError:  # a full disk leaves an empty file
        path.unlink(missing_ok=True)
        raise
    return path


def reap_stale(spool: Path) -> int:
    """End every recorded jail whose daemon is dead and return how many were still alive.

    Only a process with the recorded start time is signalled, through a descriptor opened before that
    comparison, so a reused pid is never hit. Jails of a living daemon are left alone.
    """
    ended = 0
    for path in sorted(spool.glob(f"*{_SUFFIX}")):
        try:
            record = Record(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            pass  # cut short by a crash: written before the jail could do anything
        else:
            if is_process(record.owner, record.owner_start, record.boot):
                continue
            ended += _end(record)
        path.unlink(missing_ok=True)
    for path in sorted([*spool.glob(f"{_CHECK}*"), *spool.glob(f"{DOOR}*")]):
        # whether the process that made this folder is alive; a daemon and `fleet check` share the spool
        pid, _, rest = path.name.partition("-")[2].partition("-")
        start = rest.partition("-")[0]
        if not (pid.isdecimal() and start.isdecimal() and is_process(int(pid), int(start), boot_id())):
            with suppress(JailError):  # the next start tries again
                rmtree(spool, path.name)
    return ended


def leftover_prefix(kind: str = _CHECK) -> str:
    """Prefix of a folder of this process: a killed process leaves it for the next start."""
    own = proc_stat(os.getpid())
    return f"{kind}{os.getpid()}-{own.start if own else 0}-"


def _end(record: Record) -> int:
    pidfd = open_pidfd(record.pid)
    if pidfd is None:
        return 0
    try:
        if not is_process(record.pid, record.start, record.boot):
            return 0
        kill(pidfd)
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        if not poller.poll(_END_MS):
            raise JailError(f"a stale jail (pid {record.pid}) does not end", remedy="restart the machine")
        return 1
    except (
        PermissionError
    ):  # of another user, so in a container: the engine ends it (`fleet.jail.docker.reap`)
        return 0
    finally:
        os.close(pidfd)
