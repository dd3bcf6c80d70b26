"""A chain with contracts whose posture a test sets, and a watch on them that may be killed at any step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleet.chain.node.rpc import Rpc
from fleet.config.platform import ChainSection, Platform
from fleet.config.watch import WatchSection
from fleet.devnet import artifact, node
from fleet.devnet.surfaces.posture import GAS, encoded
from fleet.service.notify.news import of_posture
from fleet.service.notify.state import NoticeState
from fleet.triggers.chain.posture_watch import PostureWatch
from fleet.triggers.chain.telling import KEY, TOLD, Telling, tellings
from tests.doubles.triggers import FiringRecorder, MemoryFacts

NAME = "devnet"


class Killed(Exception):
    """The daemon was killed here."""


@dataclass
class MortalFacts(MemoryFacts):
    """Facts whose daemon is killed before or after the write with this number; -1 for never."""

    dies: int = -1
    after: bool = False

    async def swap(self, key: str, old: str | None, value: str) -> bool:
        self._step(after=False)
        done = await super().swap(key, old, value)
        self._step(after=True)
        return done

    async def put(self, key: str, value: str) -> None:
        self._step(after=False)
        await super().put(key, value)
        self._step(after=True)

    def _step(self, *, after: bool) -> None:
        if self.dies == 0 and self.after == after:
            self.dies = -1
            raise Killed
        self.dies -= after and self.dies > 0


@dataclass
class WatchedChain:
    """One transaction is one block; `watch` is the present daemon's."""

    rpc: Rpc
    sender: str
    section: WatchSection
    facts: MortalFacts = field(default_factory=MortalFacts)
    sink: FiringRecorder = field(default_factory=FiringRecorder)
    seen: dict[int, Telling] = field(default_factory=dict)
    notices: NoticeState = field(default_factory=NoticeState)
    calls: int = 0
    requests: int = 0
    """Of daemons before the present one."""

    watch: PostureWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = self.started()

    def restart(self) -> None:
        """The watch of another daemon on the same journal."""
        self.calls += self.watch.reader.calls
        self.requests += self.watch.reader.requests
        self.watch = self.started()

    def started(self) -> PostureWatch:
        chain = ChainSection(rpc=self.rpc.url, id=31337)
        profile = Platform(name=NAME, chain=chain, watch=self.section, log="file")
        return PostureWatch(profile, self.rpc, self.facts, self.sink, lambda _: ("qa-watch",))

    def asked(self) -> tuple[int, int]:
        """Calls and requests since this was asked last."""
        self.restart()
        found = (self.calls, self.requests)
        self.calls = self.requests = 0
        return found

    async def write(
        self, to: str, slots: Mapping[bytes, bytes], event: Sequence[str | bytes] = (), data: bytes = b""
    ) -> int:
        """Set slots, after an event (its signature, then topics); the block."""
        receipt = await node.transact(self.rpc, self.sender, to, encoded(slots, event, data), gas=GAS)
        return int(receipt["blockNumber"], 16)

    async def look(self) -> list[str]:
        """What one look tells, as the operator reads it; a killed daemon is followed by another one."""
        while True:
            try:
                await self.watch.look()
                break
            except Killed:
                self.restart()
        found = tellings({key: text for key, text in self.facts.items() if key.startswith(TOLD)})
        for _, one in found:
            assert self.seen.setdefault(one.seq, one) == one  # a telling never changes
        before = len(self.notices.waiting)
        self.notices = of_posture(self.notices, found, NAME, "2026-11-28T00:00:00Z")
        return [one.text for one in self.notices.waiting[before:]]

    async def state(self) -> dict[str, Any]:
        return dict(json.loads(self.facts[KEY + NAME]))


async def watched(rpc: Rpc, sender: str) -> str:
    """A new contract without any posture."""
    return await node.create(rpc, sender, artifact.load("Watched").code)
