"""What a process and its descendants have used of the processor, and how long they had to wait for it."""

from __future__ import annotations

import os
from dataclasses import dataclass

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds. `queued_s`: ready to run while something else ran; of threads that still live."""

    cpu_s: float = 0.0
    queued_s: float = 0.0

    def __or__(self, other: Usage) -> Usage:
        """The higher of two readings: a process that is gone takes its figures with it."""
        return Usage(max(self.cpu_s, other.cpu_s), max(self.queued_s, other.queued_s))


def of_group(leader: int) -> Usage:
    """Of all processes in the group or the session of `leader`, and of its children's children in any other.

    Unreadable values count as zero; so does a child that was not waited for, and an orphan in a session of
    its own.
    """
    found = {int(pid): _stat(pid) for pid in filter(str.isdigit, _names("/proc"))}
    members = {pid for pid, (_, *groups) in found.items() if leader in (pid, *groups[:2])}
    while more := {pid for pid, (parent, *_) in found.items() if parent in members} - members:
        members |= more
    cpu_s = sum(sum(found[pid][3:]) for pid in members) * _TICK_S
    return Usage(cpu_s, sum(map(_queued_s, members)))


def _stat(pid: str) -> tuple[int, ...]:
    """Parent, group, session, and four times in ticks: user, system, and those of children it waited for."""
    text = _read(f"/proc/{pid}/stat").rpartition(b")")[2]  # a process chooses its own name, brackets included
    words = text.split()
    return (*map(int, words[1:4]), *map(int, words[11:15])) if len(words) > 14 else (0, 0, 0)


def _queued_s(pid: int) -> float:
    total = 0
    for task in _names(f"/proc/{pid}/task"):
        words = _read(f"/proc/{pid}/task/{task}/schedstat").split()  # ns running, ns waiting to run, turns
        total += int(words[1]) if len(words) == 3 else 0
    return total / 1e9


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
