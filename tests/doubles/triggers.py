"""A sink of firings and a store of facts, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from fleet.triggers.model import Firing, Skip


@dataclass
class FiringRecorder:
    """A sink that keeps firings and skips, each key once, like the journal."""

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
