"""Whether a daemon runs here, and its pages, by the standard library: httpx takes longer than the rest."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from fleet.app.lock import holder
from fleet.service.listeners import SOCKET

PAGE_S = 3.0
"""Most seconds of silence: more than the daemon waits for its chain."""
LARGEST = 1 << 20
"""Largest page, in bytes."""


class _Line(HTTPConnection):
    """A connection to the daemon's unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("fleet", timeout=PAGE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def daemon_of(state: Path) -> int:
    """Pid of the running daemon, 0 when none can be reached."""
    return holder(state) if (state / SOCKET).is_socket() else 0


def page(state: Path, path: str) -> dict[str, Any]:
    """A health page as JSON, whatever its status; {} when no daemon answers in time."""
    try:
        with line_to(state) as line:
            asked = _Line(line)
            try:
                asked.request("GET", path)
                found = json.loads(asked.getresponse().read(LARGEST))
            finally:
                asked.close()
    except (OSError, HTTPException, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@contextmanager
def line_to(state: Path) -> Iterator[str]:
    """The socket's path through the folder's descriptor: an address has no room for a longer one."""
    folder = os.open(state, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)
