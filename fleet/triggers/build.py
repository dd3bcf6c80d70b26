"""Fires when the build of the platform changes: what its version document says, or its site's own ETag.

The first sight of a build is not a change, and a change counts once two looks agree on it: a page that
differs at every look never fires. The state is in the journal, so a change while the daemon was down fires
at the next start, and of several daemons one fires.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection

import anyio

from fleet.clock import Clock
from fleet.config import Platform
from fleet.errors import ConfigError, FleetError
from fleet.http_client import HttpFailure, get, open_client
from fleet.triggers.model import FactStore, FiringSink
from fleet.triggers.poller import Poller

EVENT = "build-changed"
KEY = "triggers.build"
"""Prefix of the journal's key; the platform's name follows."""
LOOK_S = 60.0
ANSWER_S = 10.0
LARGEST = 65_536
"""Most bytes of a version document."""

Read = Callable[[], Awaitable[str]]
"""The build now, "" when the platform does not say. Raises HttpFailure or TimeoutError."""


class BuildWatch(Poller):
    """Looks while any persona is subscribed."""

    EVENT = EVENT
    EXPECTED = (HttpFailure, TimeoutError, FleetError, OSError, ValueError)

    def __init__(  # noqa: PLR0913  a constructor
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
        super().__init__(sink, every_s, clock)
        self._key, self._facts = f"{KEY}.{platform.name}", facts
        self._schedule = platform.schedule
        self._subscribers, self._read = subscribers, read or _reader(platform)
        self._candidate = ""
        self._stated = bool(read or platform.web.version_url)

    async def look(self) -> None:
        """Fire a change that two looks agree on."""
        personas = sorted(self._subscribers(EVENT))
        if not (personas and self._stated and self._schedule.is_open(self._clock.now())):
            return
        now = await self._read()
        if not now:
            raise ConfigError(
                "the platform states no build: its profile has no web.version, its site no ETag"
            )
        stored = await self._facts.get(self._key)
        known, changes = _state(stored)
        if now == known:
            self._candidate = ""
        elif not known:
            await self._facts.swap(self._key, stored, json.dumps([now, changes]))
        elif now != self._candidate:
            self._candidate = now
        else:
            keys = [(persona, build_key(persona, now, changes + 1)) for persona in personas]
            if await self.fire(keys, "the platform's build changed"):
                await self._facts.swap(self._key, stored, json.dumps([now, changes + 1]))
                self._candidate = ""


def build_key(persona: str, build: str, number: int) -> str:
    """`qa-retest@build-changed:9f3c…:2`: the second change; a build that comes back fires again."""
    return f"{persona}@{EVENT}:{build[:12]}:{number}"


def _reader(platform: Platform) -> Read:
    url, stated = platform.web.version_url, bool(platform.web.version)

    async def read() -> str:
        if not url:
            return ""
        with anyio.fail_after(ANSWER_S):
            async with open_client(url, comment=platform.authorisation.comment) as client:
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
