"""Fires when a log changed: the event `log-changed` of a platform whose log is not the diamond's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from fleet.clock import Clock
from fleet.triggers.model import FactStore, FiringSink, event_key
from fleet.triggers.poller import Poller

KEY = "triggers.log"
"""Prefix of the journal's key; the log's name follows."""
EVENT = "log-changed"


class LogFileWatch(Poller):
    """Looks at the number of entries. The first sight is not a change; one while the daemon was down is."""

    EVENT = EVENT

    def __init__(  # noqa: PLR0913  a constructor
        self,
        name: str,
        count: Callable[[], Awaitable[int]],
        facts: FactStore,
        sink: FiringSink,
        subscribers: Callable[[str], Collection[str]],
        *,
        every_s: float = 2.0,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(sink, every_s, clock)
        self._key, self._count, self._facts, self._subscribers = f"{KEY}.{name}", count, facts, subscribers

    async def look(self) -> None:
        """Fire a changed number of entries, once; a log that was cleared changes too."""
        stored = await self._facts.get(self._key)
        entries, changes = map(int, (stored or "0 0").split())
        if (now := await self._count()) == entries and stored:
            return
        keys = [
            (persona, event_key(persona, EVENT, now, str(changes + 1)))
            for persona in sorted(self._subscribers(EVENT))
        ]
        if not stored or not keys or await self.fire(keys, "the log changed"):
            await self._facts.swap(self._key, stored, f"{now} {changes + 1}")
