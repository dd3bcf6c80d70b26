"""What the pages read: the state directory, the daemon's own facts, and what happens now."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from fleet.app.journal import SharedJournal
from fleet.app.status import gather
from fleet.personas.load import LoadedPersona
from fleet.runs.activity import ActivityFeed
from fleet.service.ingress import AskForRun
from fleet.triage.outputs.document import WorklistDocument
from fleet.triage.outputs.files import NAME, written
from fleet.triage.outputs.selection import DAY, moment
from fleet.web.live import LiveState

FRESH_S = 2.0
"""Seconds for which a status counts, unless something happened since it was read."""


@dataclass(slots=True)
class Sources:
    """`facts` is what /readyz says, {} while the daemon cannot start yet; `waits` says why it cannot. `ask`
    queues a run, where a daemon is ready to make it."""

    state: Path
    live: LiveState
    journal: SharedJournal
    facts: Callable[[], Awaitable[Mapping[str, Any]]]
    personas: Mapping[str, LoadedPersona]
    ask: AskForRun | None = None
    waits: str = ""
    verified: tuple[str, list[str]] = ("", [])
    """When a reader last had the log compared with its mirror (ISO), and what that showed."""
    activity: ActivityFeed = field(init=False)
    _document: tuple[tuple[int, int], WorklistDocument] = ((0, 0), WorklistDocument())
    _status: tuple[float, int, dict[str, Any]] = (float("-inf"), -1, {})
    _reading: anyio.Lock = field(default_factory=anyio.Lock)

    def __post_init__(self) -> None:
        self.activity = ActivityFeed(self.state)

    async def document(self) -> WorklistDocument:
        """The list as triage wrote it last; read again when the file changed. ConfigError."""
        try:
            file = (self.state / NAME).stat()
        except FileNotFoundError:
            return WorklistDocument()
        mark = (file.st_mtime_ns, file.st_ino)
        if self._document[0] != mark:
            found = await to_thread.run_sync(written, self.state)
            self._document = (mark, found or WorklistDocument())
        return self._document[1]

    async def status(self) -> dict[str, Any]:
        """The data of `fleet status`: many pages at a time are one look."""
        async with self._reading:
            at, seen, data = self._status
            if time.monotonic() - at > FRESH_S or seen != self.live.seen:
                seen = self.live.seen
                since = moment(DAY, datetime.now(UTC))
                document = await self.document()
                data = await gather(self.state, since, await self.facts(), document, left_out=("still",))
                self._status = (time.monotonic(), seen, data)
            return data

    def forget(self) -> None:
        """Read everything again: a person has decided something."""
        self._status = (float("-inf"), -1, {})
