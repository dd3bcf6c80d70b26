"""What every trigger says: this persona is due, under this key; or: it was due and does not run, because.

A key names the reason, not the scheduler: two daemons that see the same tick, event, file or delivery
write the same key, and the journal takes a key once. So nothing here may be random, and no clock time goes
into the key of something that is not a clock's. That two due triggers of one persona never overlap is the
queue's business: a trigger does not know when a run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from fleet.clock import iso

EVERYONE = "*"
"""The persona of a Skip that concerns all of them: the clock stepped, the node did not answer."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A persona is due. `why` is one line for people; `due` is when it was, in UTC."""

    key: str
    persona: str
    why: str
    due: datetime


@dataclass(frozen=True, slots=True)
class Skip:
    """Something was due and does not run. `key` is what it, or the first of several, would have had."""

    persona: str
    key: str
    reason: str


class FiringSink(Protocol):
    """Takes what the triggers say: the journal and the queue in the daemon, `FiringRecorder` in tests.

    Both methods return when it is recorded, and never wait for a run. What they raise costs that one firing
    (a Skip says so), never the schedule.
    """

    async def fire(self, firing: Firing) -> bool:
        """Record and queue; False when the key was there before, so that nothing new starts."""

    async def skip(self, skip: Skip) -> None:
        """Record as an event."""


class FireAll(Protocol):
    """A sink's way to take many at once: all of them, or it raises and took none."""

    async def __call__(self, firings: Sequence[Firing], /) -> None: ...


class FactStore(Protocol):
    """Small durable facts by key; the journal is one."""

    async def get(self, key: str) -> str | None: ...
    async def put(self, key: str, value: str) -> None: ...
    async def swap(self, key: str, old: str | None, value: str) -> bool: ...


@dataclass
class FiringRecorder:
    """A sink that keeps what it is told, each key once, as the journal does."""

    fired: list[Firing] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    repeats: list[Firing] = field(default_factory=list)

    async def fire(self, firing: Firing) -> bool:
        new = firing.key not in self.keys
        (self.fired if new else self.repeats).append(firing)
        return new

    async def skip(self, skip: Skip) -> None:
        self.skips.append(skip)

    @property
    def keys(self) -> list[str]:
        return [firing.key for firing in self.fired]


class MemoryFacts(dict[str, str]):
    """Facts that live as long as the test."""

    async def get(self, key: str) -> str | None:  # type: ignore[override]
        return super().get(key)

    async def put(self, key: str, value: str) -> None:
        self[key] = value

    async def swap(self, key: str, old: str | None, value: str) -> bool:
        if await self.get(key) != old:
            return False
        await self.put(key, value)
        return True


def tick_key(persona: str, tick: datetime) -> str:
    """`qa-ux@2026-11-21T18:00:00Z`: of a clock, by interval or cron."""
    return f"{persona}@{iso(tick)}"


def round_key(persona: str, count: int) -> str:
    """`qa-fuzz@round:17`: of a continuous persona, after 17 runs ended."""
    return f"{persona}@round:{count}"


def event_key(persona: str, event: str, block: int, mark: str) -> str:
    """`qa-security@facets-changed:812:9f3c…`; `mark` is a log index or a hash."""
    return f"{persona}@{event}:{block}:{mark}"


def file_key(persona: str, digest: str, count: int) -> str:
    """`qa-ux@file:9f3c…:2`: the second change; `digest` is the SHA-256 of path and content."""
    return f"{persona}@file:{digest[:12]}:{count}"


def hook_key(persona: str, hook: str, delivery: str) -> str:
    """`qa-ux@hook:deploy:8f3a…`: with the hook's name, so that no sender can use up another one's ids."""
    return f"{persona}@hook:{hook}:{delivery}"


def manual_key(persona: str, ident: str) -> str:
    return f"{persona}@manual:{ident}"
