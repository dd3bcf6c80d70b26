"""A guest that says what its container is like, and leaves one file in /box."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> int:
    sys.stdin.readline()
    Path("/box/report").write_text("report")
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    facts = {
        "user": [os.getuid(), os.getgid(), os.getgroups()],
        "environ": sorted(os.environ),
        "pid": os.getppid(),
        "filters": status["Seccomp_filters"],
        "at": os.getcwd(),
        "sys": os.listdir("/sys"),
        "places": {path: _place(path) for path in ("/box", "/tmp", "/dev/shm")},
    }
    print(json.dumps(facts))
    return 0


def _place(path: str) -> list[object]:
    """Owner, mode, bytes, inodes."""
    found, room = os.stat(path), os.statvfs(path)
    return [found.st_uid, oct(found.st_mode & 0o7777), room.f_blocks * room.f_frsize, room.f_files]
