"""Fires when the build of the platform changes: what its version document says, or its site's own ETag.

The first sight of a build is no change, and a change counts once two looks agree on it: a page that differs
at every look never fires. The state is in the journal, so a change while the daemon was down fires at the
next start, and of several daemons one fires.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection

import anyio

from fleet.clock import Clock, SystemClock, rest
from fleet.config import Platform
from fleet.errors import FleetError
from fleet.http_client import HttpFailure, get, open_client
from fleet.triggers.deliver import deliver, described, tell
from fleet.triggers.model import EVERYONE, FactStore, Firing, FiringSink, Skip

EVENT = "build-changed"
KEY = "triggers.build"
"""Prefix of the journal's key; the platform's name follows."""
LOOK_S = 60.0
ANSWER_S = 10.0
LARGEST = 65_536
"""Most bytes of a version document."""

Read = Callable[[], Awaitable[str]]
"""The build now, "" when the platform does not say. Raises HttpFailure or TimeoutError."""


class BuildWatch:
    """Looks while any persona is subscribed; `trouble` is why the last look failed, or ""."""

    def __init__(
        self,
        platform: Platform,
        facts: FactStore,
        sink: FiringSink,
        subscribers: Callable[[str], Collection[str]],
        *,
        every_s: float = LOOK_S,
        clock: Clock | None = None,
        read: Read | None = None,
    ) -> None:
        self._key, self._facts, self._sink = f"{KEY}.{platform.name}", facts, sink
        self._subscribers, self._every_s, self._clock = subscribers, every_s, clock or SystemClock()
        self._read = read or _reader(platform)
        self._candidate, self._told = "", ""
        self.trouble = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if self._subscribers(EVENT):
                await self.turn()
            await anyio.sleep(rest(self._every_s))

    async def turn(self) -> None:
        """Look once and handle any failure; what is new about it is reported once."""
        try:
            self.trouble = await self.look()
        except (HttpFailure, TimeoutError, FleetError, OSError, ValueError) as error:
            self.trouble = described(error)
        if self.trouble and self.trouble != self._told:
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@{EVENT}", self.trouble))
        self._told = self.trouble

    async def look(self) -> str:
        """Fire a change that two looks agree on; why the platform's build is not known, or ""."""
        now = await self._read()
        if not now:
            return "the platform states no build: its profile has no web.version, and its site no ETag"
        stored = await self._facts.get(self._key)
        known, changes = _state(stored)
        if now == known:
            self._candidate = ""
        elif not known:
            await self._facts.swap(self._key, stored, json.dumps([now, changes]))
        elif now != self._candidate:
            self._candidate = now
        elif await self._fire(now, changes + 1):
            await self._facts.swap(self._key, stored, json.dumps([now, changes + 1]))
            self._candidate = ""
        return ""

    async def _fire(self, build: str, number: int) -> bool:
        """Fire, then store: after a crash in between, the key is the same. False to try again."""
        personas = sorted(self._subscribers(EVENT))
        refused = []
        for persona in personas:
            key = build_key(persona, build, number)
            firing = Firing(key, persona, "the platform's build changed", self._clock.now())
            if problem := await deliver(self._sink, firing):
                refused.append(Skip(persona, key, problem))
        for skip in refused:
            await tell(self._sink, skip)
        return len(refused) < len(personas)


def build_key(persona: str, build: str, number: int) -> str:
    """`qa-retest@build-changed:9f3c…:2`: the second change; a build that comes back fires again."""
    return f"{persona}@{EVENT}:{build[:12]}:{number}"


def _reader(platform: Platform) -> Read:
    url, stated = platform.web.version_url, bool(platform.web.version)

    async def read() -> str:
        if not url:
            return ""
        with anyio.fail_after(ANSWER_S):
            async with open_client(url) as client:
                status, headers, body = await get(client, url, limit=LARGEST if stated else 0)
        if status != 200:
            raise HttpFailure(f"{url}: HTTP {status}")
        said = body if stated else headers.get("etag", "").encode()
        return hashlib.sha256(said).hexdigest() if said else ""

    return read


def _state(text: str | None) -> tuple[str, int]:
    """Build and number of changes as stored."""
    try:
        build, changes = json.loads(text or '["", 0]')
        return str(build), int(changes)
    except (ValueError, TypeError):
        return "", 0
