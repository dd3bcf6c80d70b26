"""Who looked at which page, when, from where, how long: `access-YYYY-MM.jsonl` in the state directory."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from starlette.requests import Request

from fleet.clock import iso_ms
from fleet.errors import FleetError
from fleet.files import login
from fleet.service.http_server import host_of
from fleet.text import line
from fleet.web import session

KEPT = 5
"""Files kept, one a month: at least 90 days."""
USER = "x-forwarded-user"
"""Where a proxy of the operator's writes who passed it; believed only of a request by one of its names."""
_LOG = logging.getLogger("fleet.web")


def login_of(port: int, ours: int) -> str:
    """The login of the process here whose connection goes from a port to one of ours; "" for none."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for row in Path(table).read_text("ascii").splitlines()[1:]:
                fields = row.split()
                ends = [int(one.rpartition(":")[2], 16) for one in fields[1:3]]
                if ends == [port, ours]:
                    return login(int(fields[7]))
    return ""


class AccessLog:
    """One line for each request that a page or a form answered."""

    def __init__(self, state: Path, hosts: Collection[str]) -> None:
        self._state, self._hosts = state, hosts

    def note(self, request: Request, status: int, began: datetime) -> None:
        """Append a line; what cannot be written is only logged."""
        now = datetime.now(UTC)
        entry = {
            "at": iso_ms(began),
            "who": self._who(request),
            "address": request.client.host if request.client else "",
            "session": self._session(request),
            "asked": f"{request.method} {line(request.url.path, 200)}",
            "status": status,
            "ms": round((now - began).total_seconds() * 1e3),
        }
        path = self._state / f"access-{began:%Y-%m}.jsonl"
        try:
            is_new = not path.exists()
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, json.dumps(entry).encode() + b"\n")
            finally:
                os.close(fd)
            for old in sorted(self._state.glob("access-????-??.jsonl"))[:-KEPT] if is_new else ():
                old.unlink()
        except OSError as error:
            _LOG.warning("%s: cannot be written: %s", path.name, error.strerror)

    def _who(self, request: Request) -> str:
        """The login of who is connected; before it, at one of the proxy's names, whom the proxy let pass."""
        passed = ""
        if host_of(request) in self._hosts:
            passed = f"{line(request.headers.get(USER, 'unknown'), 100)} through "
        port = request.client.port if request.client else 0
        known = login_of(port, (request.scope.get("server") or ("", 0))[1] or 0)
        return f"{passed}{known or 'unknown'}@{socket.gethostname()}"

    def _session(self, request: Request) -> str:
        """A digest of the session of somebody who may change something; "" for a reader."""
        held = ""
        with suppress(FleetError):  # the token's file: the answer says so
            held = session.session_of(self._state, request)
        return hashlib.sha256(held.encode()).hexdigest()[:12] if held else ""
