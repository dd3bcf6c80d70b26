"""The output of every trigger: a Firing (a persona is due, with a key) or a Skip (due, but does not run).

A key names the reason, not the scheduler: two daemons that see the same tick, event, file or delivery
write the same key, and the journal accepts a key once. So nothing in a key may be random, and only a clock's
trigger may put a time into it. The queue, not the trigger, keeps a persona's runs from overlapping: a trigger
does not know when a run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from fleet.clock import iso

EVERYONE = "*"
"""The persona of a Skip that affects all personas: the clock stepped, the node did not answer."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A persona is due. `why` is one line for people; `due` is the due time in UTC."""

    key: str
    persona: str
    why: str
    due: datetime


@dataclass(frozen=True, slots=True)
class Skip:
    """A persona was due but does not run. `key` is the key of the first firing that is left out."""

    persona: str
    key: str
    reason: str


class FiringSink(Protocol):
    """Accepts firings and skips: the journal and the queue in the daemon.

    Both methods return once it is recorded, and never wait for a run. An exception costs that one firing
    (with a Skip), never the schedule.
    """

    async def fire(self, firing: Firing) -> bool:
        """Record and queue; False if the key is already known, so that nothing new starts."""

    async def skip(self, skip: Skip) -> None:
        """Record as an event."""


class FireAll(Protocol):
    """Accepts many firings at once: all of them, or it raises and accepts none."""

    async def __call__(self, firings: Sequence[Firing], /) -> object: ...


class FactStore(Protocol):
    """Small durable facts by key; the journal is one."""

    async def get(self, key: str) -> str | None: ...
    async def put(self, key: str, value: str) -> None: ...
    async def swap(self, key: str, old: str | None, value: str) -> bool: ...


def tick_key(persona: str, tick: datetime) -> str:
    """`qa-ux@2026-11-21T18:00:00Z`: of an interval or cron tick."""
    return f"{persona}@{iso(tick)}"


def round_key(persona: str, count: int) -> str:
    """`qa-fuzz@round:17`: of a continuous persona after 17 ended runs."""
    return f"{persona}@round:{count}"


def event_key(persona: str, event: str, block: int, mark: str) -> str:
    """`qa-security@facets-changed:812:9f3c…`; `mark` is a log index or a hash."""
    return f"{persona}@{event}:{block}:{mark}"


def file_key(persona: str, digest: str, count: int) -> str:
    """`qa-ux@file:9f3c…:2`: the second change; `digest` is the SHA-256 of path and content."""
    return f"{persona}@file:{digest[:12]}:{count}"


def hook_key(persona: str, hook: str, delivery: str) -> str:
    """`qa-ux@hook:deploy:8f3a…`: with the hook's name, so that a sender cannot use up another hook's ids."""
    return f"{persona}@hook:{hook}:{delivery}"


def manual_key(persona: str, ident: str) -> str:
    return f"{persona}@manual:{ident}"


def replay_key(persona: str, run: str, ident: str) -> str:
    """Of a run that asks the calls of an earlier one again."""
    return f"{persona}@replay:{run}:{ident}"


def try_key(persona: str, probe: str, ident: str) -> str:
    """Of a run of one probe that posts and counts nothing."""
    return f"{persona}@try:{probe}:{ident}"


def asked_for(key: str) -> tuple[str, str]:
    """What a person's key names: ("replay", the run) or ("try", the probe); ("", "") for any other key."""
    kind, _, rest = key.partition("@")[2].partition(":")
    return (kind, rest.partition(":")[0]) if kind in ("replay", "try") else ("", "")
