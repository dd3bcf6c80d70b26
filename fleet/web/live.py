"""What happens now, for the pages: the runs in flight, the latest lines, and followers of changes.

What happens in a moment is one message, written once for all followers. A follower has no queue: one that
reads slowly gets the latest lines, and how many it missed, so it costs no other one anything.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field

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
    RunPaused,
    ToolRequested,
)

ROOM = 64
"""Most lines of a message."""
LATEST = 20
"""Lines that a page shows."""
JOIN_S = 0.05
"""From what happens to its message: what arrives together is sent together."""
PAUSE_S = 0.2
"""Least time between two messages."""
AT_ONCE = 16
"""Followers that are notified in one turn of the loop: a page asked for meanwhile waits for no more."""


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


class Follower:
    """The messages for one reader, until `stay_s` are over."""

    def __init__(self, live: LiveState) -> None:
        self._live, self._seen = live, live.seen
        self._woken, self._over = asyncio.Event(), False

    def wake(self) -> None:
        self._woken.set()

    async def messages(self, stay_s: float) -> AsyncGenerator[str, None]:
        """JSON: `lines` with `at` (ISO) and `words`, and how many `dropped` ones did not fit."""
        end = asyncio.get_running_loop().call_later(stay_s, self._leave)
        try:
            while True:
                await self._woken.wait()
                self._woken.clear()
                if self._over:
                    return
                since, self._seen = self._seen, self._live.seen
                yield self._live.message(since)
        finally:
            end.cancel()

    def _leave(self) -> None:
        self._over = True
        self.wake()


class LiveState:
    """A reader of the daemon's feed and of every run."""

    def __init__(self) -> None:
        self.runs: dict[str, RunInFlight] = {}
        self.lines: deque[LiveLine] = deque(maxlen=ROOM)
        self.followers: set[Follower] = set()
        self.seen = 0
        """Lines so far: what was read before another one is old."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due, self._sent = False, float("-inf")
        self._written: tuple[int, dict[int, str]] = (-1, {})

    def follow(self) -> Follower:
        """One more follower; it is in the set until it is taken out."""
        if (loop := asyncio.get_running_loop()) is not self._loop:  # what another loop had begun is not sent
            self._loop, self._due = loop, False
        follower = Follower(self)
        self.followers.add(follower)
        return follower

    def message(self, since: int) -> str:
        """What happened after the line `since`; most followers need the same one."""
        if self._written[0] != self.seen:
            self._written = (self.seen, {})
        texts = self._written[1]
        if since not in texts:
            lines = list(self.lines)[max(0, len(self.lines) - (self.seen - since)) :]
            told = {"lines": [asdict(one) for one in lines], "dropped": self.seen - since - len(lines)}
            texts[since] = json.dumps(told)
        return texts[since]

    def daemon(self, event: DaemonEvent) -> None:
        self._tell(LiveLine(event.at, daemon_words.words(event)))

    def run(self, event: Event) -> None:
        if isinstance(event, LIVE):
            return
        if isinstance(event, Header):
            self.runs[event.run] = RunInFlight(event.persona, event.at)
        known = self.runs.get(event.run)
        if known is not None and isinstance(event, RunPaused):
            known.question = timeline.words(event)
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
        if self.followers and self._loop is not None and not self._due:
            self._due = True
            with suppress(RuntimeError):  # the pages are closed: a run goes on
                self._loop.call_soon_threadsafe(self._soon, self._loop)

    def _soon(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_at(max(loop.time() + JOIN_S, self._sent + PAUSE_S), self._send, loop)

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due, self._sent = False, loop.time()
        self._wake(iter(tuple(self.followers)), loop)

    def _wake(self, left: Iterator[Follower], loop: asyncio.AbstractEventLoop) -> None:
        for number, follower in enumerate(left, 1):
            follower.wake()
            if number == AT_ONCE:
                loop.call_soon(self._wake, left, loop)
                return
