"""What happens now, for the pages: the runs in flight, the latest lines, and followers of changes.

A follower has a bounded queue. What does not fit is dropped and counted, so that a slow reader costs no other
one anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import anyio

from fleet.events import daemon_words, timeline
from fleet.events.daemon_events import DaemonEvent
from fleet.events.model import (
    LIVE,
    Event,
    FindingPosted,
    FindingRaised,
    FindingVerified,
    Footer,
    Header,
    ToolRequested,
)

ROOM = 64
"""Lines that wait for a slow follower."""
LATEST = 20
"""Lines that a page shows."""
PAUSE_S = 0.2
"""Pause between two messages to a follower: what happens meanwhile is in one."""


@dataclass(slots=True)
class RunInFlight:
    """What a run in flight did so far; `question` is the call it makes now."""

    persona: str
    began: str
    calls: int = 0
    findings: set[str] = field(default_factory=set)
    question: str = ""


@dataclass(frozen=True, slots=True)
class LiveLine:
    """One event in words; `at` is ISO."""

    at: str
    words: str


@dataclass(frozen=True, slots=True)
class PageUpdate:
    """Something changed since the last one; `dropped` lines did not fit."""

    lines: tuple[LiveLine, ...]
    dropped: int = 0


class Follower:
    """The changes for one reader, until it closes."""

    def __init__(self, room: int = ROOM) -> None:
        self._lines: deque[LiveLine] = deque()
        self._room, self._dropped, self._wake = room, 0, anyio.Event()

    def take(self, one: LiveLine | None) -> None:
        if one is not None and len(self._lines) < self._room:
            self._lines.append(one)
        elif one is not None:
            self._dropped += 1
        self._wake.set()

    async def changes(self, pause_s: float = PAUSE_S) -> AsyncGenerator[PageUpdate, None]:
        """A message for all that happened in a pause; it never ends by itself."""
        while True:
            await self._wake.wait()
            await anyio.sleep(pause_s)
            self._wake = anyio.Event()
            made = PageUpdate(tuple(self._lines), self._dropped)
            self._lines.clear()
            self._dropped = 0
            yield made


class LiveState:
    """A reader of the daemon's feed and of every run."""

    def __init__(self) -> None:
        self.runs: dict[str, RunInFlight] = {}
        self.lines: deque[LiveLine] = deque(maxlen=LATEST)
        self.followers: set[Follower] = set()
        self.seen = 0
        """Lines so far: what was read before another one is old."""

    def daemon(self, event: DaemonEvent) -> None:
        self._tell(LiveLine(event.at, daemon_words.words(event)))

    def run(self, event: Event) -> None:
        if isinstance(event, LIVE):
            return
        if isinstance(event, Header):
            self.runs[event.run] = RunInFlight(event.persona, event.at)
        known = self.runs.get(event.run)
        if known is not None and isinstance(event, ToolRequested):
            known.calls += 1
            known.question = timeline.words(event).partition(": ")[2]
        if known is not None and isinstance(event, FindingRaised):
            known.findings.add(event.fingerprint)
        if isinstance(event, Footer):
            self.runs.pop(event.run, None)
        if isinstance(event, Header | Footer | FindingRaised | FindingVerified | FindingPosted):
            persona = known.persona if known else "run"
            self._tell(LiveLine(event.at, f"{persona} {event.run}: {timeline.words(event)}"))
        else:
            self._tell(None)

    def _tell(self, one: LiveLine | None) -> None:
        if one is not None:
            self.lines.append(one)
            self.seen += 1
        for follower in self.followers:
            follower.take(one)
