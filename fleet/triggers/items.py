"""Fires when an item became confirmed or came back, once per item and stage, once it may be acted upon.

While it may not (a low dial, no token, no repository, no slot) nothing fires and nothing is recorded: the
item waits, and fires when that has changed. At most one item fires at a look, the gravest first, so that
a long list does not become as many runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from fleet.clock import Clock
from fleet.severity import weight
from fleet.store.rows import ItemRow
from fleet.triggers.model import FactStore, FiringSink
from fleet.triggers.poller import Poller

EVENT = "item-confirmed"
KEY = "triggers.items"
"""Prefix of the journal's key: the stage of each item that fired; the platform's name follows."""
LOOK_S = 30.0
STAGES = ("confirmed", "regression")
_ASKED = "propose"
_IDENT = re.compile(rf"manual:{_ASKED}([0-9a-f]{{12}})[0-9a-f]{{16}}", re.ASCII)

WhyWait = Callable[[ItemRow], Awaitable[str]]
"""Why an item cannot be acted upon now, "" if it can."""


class ItemBook(FactStore, Protocol):
    """The part of the journal that this watch reads."""

    async def items(self, platform: str, states: Collection[str] = (), /) -> list[ItemRow]: ...


class ItemWatch(Poller):
    """Looks while any persona is subscribed."""

    EVENT = EVENT

    def __init__(  # noqa: PLR0913  a constructor
        self,
        platform: str,
        book: ItemBook,
        sink: FiringSink,
        subscribers: Callable[[str], Collection[str]],
        waits: WhyWait,
        *,
        every_s: float = LOOK_S,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(sink, every_s, clock)
        self._platform, self._key = platform, f"{KEY}.{platform}"
        self._book, self._subscribers, self._waits = book, subscribers, waits

    async def look(self) -> None:
        """Fire the gravest item that has not fired in its present stage and need not wait."""
        personas = sorted(self._subscribers(EVENT))
        if not personas:
            return
        stored = await self._book.get(self._key)
        known: dict[str, str] = json.loads(stored or "{}")
        items = [one for one in await self._book.items(self._platform, STAGES) if one.trusted]
        for item in sorted(items, key=lambda one: (-weight(one.severity), one.since, one.fingerprint)):
            if known.get(item.fingerprint) == item.since or await self._waits(item):
                continue
            keys = [(one, item_key(one, item.fingerprint, item.since)) for one in personas]
            if await self.fire(keys, f"item {item.fingerprint} is {item.state}"):
                left = {one.fingerprint: known[one.fingerprint] for one in items if one.fingerprint in known}
                await self._book.swap(self._key, stored, json.dumps(left | {item.fingerprint: item.since}))
            return


def item_key(persona: str, item: str, since: str) -> str:
    """`qa-fix@item-confirmed:0123456789ab:2026-11-23T07:00:00Z`: an item that comes back fires again."""
    return f"{persona}@{EVENT}:{item}:{since}"


def item_of(key: str) -> str:
    """The item that a firing's key names; "" for a key of another kind."""
    head, _, tail = key.partition("@")[2].partition(":")
    return tail.partition(":")[0] if head == EVENT else ""


def asked_ident(item: str, unique: str) -> str:
    """The part of a manual key by which a person asks for one item; `unique` are 16 hex digits."""
    return f"{_ASKED}{item}{unique}"


def item_asked(key: str) -> str:
    """The item that a person asked for with a manual key; "" for another key."""
    found = _IDENT.fullmatch(key.partition("@")[2])
    return found[1] if found else ""
