"""One chain poller for the whole fleet: emits events from a durable cursor, which a reorg rewinds.

It stores the cursor together with the events of a look, then delivers the events, then removes them from the
outbox. After a crash in between, the next start delivers the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

import anyio

from fleet.clock import Clock, SystemClock, rest
from fleet.errors import TryAgain, Unreachable, UsageError
from fleet.retry import Retry
from fleet.triggers.chain.read import ChainNode, DiamondReader
from fleet.triggers.chain.state import BlockRef, WatchState, advance, baseline
from fleet.triggers.deliver import deliver, described, tell
from fleet.triggers.model import EVERYONE, FactStore, Firing, FiringSink, Skip, event_key

KEY = "triggers.chain"
"""Journal key of the cursor."""
SLOWEST_S = 300.0
FAR = 50_000
"""Blocks; after a longer absence, earlier events are given up with a Skip."""
GAP_S = 1.0
"""Minimum seconds between two looks, however often the watch is woken."""
CROWD = 256
"""Maximum events of one kind that fire per look; the rest of a flood is one Skip."""

Subscribers = Callable[[str], Collection[str]]
"""Personas with a trigger `on` this event."""


class ChainWatch:
    """Looks at the chain every `every_s` seconds or when woken; fires what changed since the stored cursor.

    `trouble` is why the latest look failed, or ""; it backs off after failures. `run` raises UsageError when
    already running.

    Args:
        confirmations: blocks required on top of a block that counts.
        sponsor: address whose balance is watched, "" for none; low is below `low_wei`.
        gap_s: minimum seconds between two looks, so that a flood of wakes costs one look per `gap_s`.
        key: journal key of the cursor; daemons that share it and watch the same things move it together.
    """

    def __init__(  # noqa: PLR0913  a constructor
        self,
        node: ChainNode,
        diamond: str,
        facts: FactStore,
        sink: FiringSink,
        subscribers: Subscribers,
        *,
        confirmations: int = 0,
        sponsor: str = "",
        low_wei: int = 0,
        every_s: float = 5.0,
        gap_s: float = GAP_S,
        clock: Clock | None = None,
        key: str = KEY,
    ) -> None:
        self._key, self._stored = key, ""
        self._reader = DiamondReader(node, diamond, sponsor=sponsor)
        self._facts, self._sink, self._subscribers = facts, sink, subscribers
        self._confirmations, self._low_wei, self._every_s = confirmations, low_wei, every_s
        self._clock = clock or SystemClock()
        self._told: dict[str, str] = {}
        self._gap_s, self._woken = gap_s, anyio.Event()
        self._failures = 0
        self._running = False
        self.trouble = ""

    async def run(self) -> None:
        """Look until cancelled."""
        if self._running:
            raise UsageError("the chain is already being watched")
        self._running = True
        try:
            while True:
                self._woken = anyio.Event()  # a wake during the look requests another one
                await self._pause(await self.turn())
        finally:
            self._running = False

    def wake(self) -> None:
        """Look soon. No effect after a failed look: the back-off protects a failing node."""
        self._woken.set()

    async def _pause(self, pause: float) -> None:
        if self._failures:
            await anyio.sleep(pause)
            return
        gap = min(self._gap_s, pause)
        with anyio.move_on_after(max(rest(pause), gap)):
            await anyio.sleep(gap)
            await self._woken.wait()

    async def turn(self) -> float:
        """Look once and handle any failure; return the seconds until the next look."""
        try:
            await self.look()
        except Exception as error:
            self._failures += 1
            self.trouble = described(error)
            await self._say({"chain": self.trouble})
        else:
            self._failures, self.trouble = 0, ""
            await self._say(self._reader.problems)
        return Retry(self._every_s, max(SLOWEST_S, self._every_s)).pause(self._failures)

    async def look(self) -> None:
        """Deliver what an earlier look left, then look once. Node and journal errors pass through.

        If another daemon moves the cursor meanwhile, the look is void: the other daemon fires its events.
        """
        with suppress(_Overtaken):
            await self._look()

    async def _look(self) -> None:
        text = await self._facts.get(self._key)
        self._stored = text or ""
        try:
            seen = WatchState.loads(text) if text else None
        except ValueError as error:
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@chain:0", f"starting over: {error}"))
            seen = None
        if seen is not None and seen.outbox:
            seen = await self._deliver(seen)
        genesis, block = await self._newest(seen)
        if block is None:
            return
        if seen is not None and seen.genesis != genesis.hash:
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@chain:0", "the node is on another chain"))
            seen = None
        if seen is None:
            await self._keep(
                baseline(genesis.hash, await self._reader.look(block, block.number), self._low_wei)
            )
            return
        if seen.trail[-1:] != (block,):
            seen = await self._checked(seen, block)
        if seen.trail[-1:] == (block,) and not self._reader.problems:
            return
        if block.number - seen.cursor > FAR:
            number = block.number - FAR
            reason = f"blocks {seen.cursor + 1} to {number} passed unseen: events in them do not fire"
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@registered:{seen.cursor + 1}:0", reason))
            seen = seen.skip_to(number)
        await self._keep(advance(seen, await self._reader.look(block, seen.cursor), self._low_wei))

    async def _newest(self, seen: WatchState | None) -> tuple[BlockRef, BlockRef | None]:
        """The first block, and the newest that counts; None while the chain is too short.

        Takes one request while the newest is the block `seen` last.
        """
        wanted = [0, seen.trail[-1].number if seen and seen.trail else 0]
        head, found = await self._reader.head(wanted)
        number = head - self._confirmations
        if number != wanted[-1]:
            wanted = [0] if number < 0 else [0, number]
            found = await self._reader.blocks(wanted)
        if [block.number for block in found] != wanted:
            raise Unreachable(f"the node does not have block {number}")
        return found[0], found[1] if number >= 0 else None

    async def _checked(self, seen: WatchState, block: BlockRef) -> WatchState:
        """`seen`, rewound if its blocks are not on the chain; Unreachable while the node lags behind it."""
        known = [old.number for old in seen.trail if old.number <= block.number]
        latest = await self._reader.blocks(known[-1:])
        if any(old not in seen.trail for old in latest) or len(latest) < len(known[-1:]):
            seen = seen.rewind(await self._reader.blocks(known))
        elif block.number < seen.cursor:
            raise Unreachable(f"the node is at block {block.number}, but has been at {seen.cursor} before")
        return seen

    async def _keep(self, seen: WatchState) -> None:
        await self._store(seen)
        if seen.outbox:
            await self._deliver(seen)

    async def _deliver(self, seen: WatchState) -> WatchState:
        """Deliver the outbox. When the sink accepts none of it, keep all of it and raise TryAgain."""
        counts: dict[str, int] = {}
        refused, taken = {}, 0
        for event in seen.outbox:
            number = counts[event.name] = counts.get(event.name, 0) + 1
            for persona in sorted(self._subscribers(event.name)) if number <= CROWD else ():
                key = event_key(persona, event.name, event.block, event.mark)
                firing = Firing(key, persona, f"{event.name} at block {event.block}", self._clock.now())
                if problem := await deliver(self._sink, firing):
                    refused[key] = Skip(persona, key, problem)
                else:
                    taken += 1
        if refused and not taken:
            raise TryAgain(f"{len(refused)} firings wait: {next(iter(refused.values())).reason}")
        for skip in refused.values():
            await tell(self._sink, skip)
        await self._crowded(seen, counts)
        seen = replace(seen, outbox=())
        await self._store(seen)
        return seen

    async def _store(self, seen: WatchState) -> None:
        text = seen.dumps()
        if not await self._facts.swap(self._key, self._stored or None, text):
            raise _Overtaken
        self._stored = text

    async def _crowded(self, seen: WatchState, counts: dict[str, int]) -> None:
        for name in [name for name, count in counts.items() if count > CROWD]:
            first = [event for event in seen.outbox if event.name == name][CROWD]
            reason = f"{counts[name]} events at once: those after the first {CROWD} do not fire"
            key = event_key(EVERYONE, name, first.block, first.mark)
            await tell(self._sink, Skip(EVERYONE, key, reason))

    async def _say(self, problems: dict[str, str]) -> None:
        """Record a problem when it appears or changes, not at every look."""
        for event, problem in problems.items():
            if self._told.get(event) != problem:
                await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@{event}", f"could not look: {problem}"))
        self._told = dict(problems)


class _Overtaken(Exception):
    """Another daemon has moved the cursor since it was loaded."""
