"""Client of this state directory's daemon, over its unix socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal

from fleet.cli.daemon_page import line_to
from fleet.errors import FleetError, Refused, TryAgain, UsageError
from fleet.http_client import HttpFailure, open_client, post

PATIENCE_S = 30.0
LARGEST = 1 << 20
"""Largest response body, in bytes."""
_ERRORS: Mapping[int, type[FleetError]] = {400: UsageError, 404: UsageError, 409: UsageError, 413: UsageError}


@dataclass(frozen=True, slots=True)
class DaemonReply:
    """What the daemon answered."""

    status: int
    body: dict[str, Any]

    def check(self) -> DaemonReply:
        """Return itself if the daemon accepted; raise UsageError, Refused or TryAgain otherwise."""
        if self.status < 300:
            return self
        why = str(self.body.get("error", f"the daemon answered {self.status}"))
        if self.status == 401:
            raise Refused(why, rule="hook-signature")
        raise _ERRORS.get(self.status, TryAgain)(why)


def ask(state: Path, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> DaemonReply:
    """POST to the daemon; TryAgain when none is running, or it is starting or stopping."""
    try:
        with line_to(state) as line, start_blocking_portal() as portal:
            status, data = portal.call(_post, line, f"http://fleet{path}", body, headers or {})
    except (HttpFailure, TimeoutError) as failure:
        raise TryAgain(f"no daemon answers in {state}", remedy="fleet up") from failure
    return DaemonReply(status, _object(data))


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def _post(line: str, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    with anyio.fail_after(PATIENCE_S):
        async with open_client(url, socket=line) as client:
            return await post(client, url, body, headers, limit=LARGEST)
