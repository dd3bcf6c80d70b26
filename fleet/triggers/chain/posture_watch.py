"""Watches the posture of contracts block by block, from a durable state that a reorganisation rewinds.

The state and what is to tell are stored together, before the first telling: a crash repeats only the same
tellings, under the same numbers. Each is a fact of the journal, which notices and `fleet check posture` read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace

from fleet.clock import Clock, iso
from fleet.config import Platform
from fleet.errors import RpcError, TryAgain, Unreachable
from fleet.triggers.chain.invariants import invariants_of
from fleet.triggers.chain.posture import (
    CODE_PARTS,
    Announcements,
    PostureReading,
    PostureState,
    WatchedEvent,
    advance,
    compared,
    folded,
)
from fleet.triggers.chain.posture_read import BlockHeader, PostureReader, carried, is_revert, plan_of
from fleet.triggers.chain.read import PAGE, ChainNode
from fleet.triggers.chain.state import BlockRef
from fleet.triggers.chain.telling import (
    INVARIANT,
    KEY,
    RING,
    SNAPSHOT,
    TOLD,
    Telling,
    expected,
    name_of,
)
from fleet.triggers.deliver import tell
from fleet.triggers.model import EVERYONE, FactStore, FiringSink, Skip, event_key
from fleet.triggers.poller import Poller

EVENT, CODE_EVENT = "posture-changed", "code-changed"
CHUNK = 16
"""Blocks that are read in one request at most, while nothing changes."""
WHOLE_EVERY = 64
"""Blocks after which everything is read again, with the code of contracts."""
FAR = 2_000
"""Blocks; after a longer absence the newest is compared with the last one that was seen."""


class PostureWatch(Poller):
    """Looks while any persona is subscribed, or the profile names contracts to watch.

    ConfigError for an invariant whose views cannot be asked.
    """

    EVENT = EVENT

    def __init__(  # noqa: PLR0913  a constructor
        self,
        platform: Platform,
        node: ChainNode,
        facts: FactStore,
        sink: FiringSink,
        subscribers: Callable[[str], Collection[str]],
        *,
        every_s: float = 5.0,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(sink, every_s, clock)
        chain, self._watch, self._name = platform.chain, platform.watch, platform.name
        own = (chain.diamond, platform.log_contract, platform.agent.identity if platform.agent else "")
        self.contracts = tuple(dict.fromkeys(one.lower() for one in (*own, *self._watch.contracts) if one))
        self.reader = PostureReader(node, self.contracts, invariants_of(self._watch, chain.diamond))
        self._confirmations, self._facts, self._subscribers = chain.confirmations, facts, subscribers
        self._stored, self._chunk = "", 1
        self._unread: Mapping[str, str] = {}

    async def look(self) -> None:
        """Deliver what an earlier look left, then look at every block since; what another daemon has looked
        at meanwhile is its own."""
        if not (self._watch.contracts or (self.contracts and self._subscribers(EVENT))):
            return
        state = await self._load()
        known = [0, state.number] if state else [0]
        head, found = await self.reader.head(known)
        head -= self._confirmations
        if head < 0 or not found or found[0].number != 0:
            return
        if state is not None and state.genesis != found[0].hash:
            await self._say("the node is on another chain: the watch of the posture begins anew")
            state = None
        if state is None:
            await self._keep(await self._baseline(found[0].hash, head))
            return
        if found[1:] == [state.trail[-1]]:
            pass
        elif found[1:] or head >= state.number:
            state = await self._rewound(state, head)
        else:
            raise Unreachable(f"the node is at block {head}, but has been at {state.number} before")
        while state is not None and state.number < head:
            state = await self._step(state, head)
        if state is not None and (settled := state.settled()) is not state:
            await self._keep(settled)

    async def _load(self) -> PostureState | None:
        text = await self._facts.get(KEY + self._name)
        self._stored = text or ""
        if not text:
            return None
        try:
            state = PostureState.loads(text)
        except ValueError as error:
            await self._say(f"starting over: {error}")
            return None
        return await self._delivered(state) if state.outbox else state

    async def _baseline(self, genesis: str, head: int) -> PostureState:
        """The first look: what is there is not a change."""
        since = head if self._watch.since is None else self._watch.since
        events: list[WatchedEvent] = []
        for start in range(since, head + 1, PAGE):
            events += await self.reader.events(self.contracts, start, min(start + PAGE - 1, head))
        (header,), _ = await self.reader.headers(head, head, self.contracts)
        reading = await self.reader.whole(header.ref, folded({}, events))
        await self._problems(reading)
        return PostureState(genesis, (header.ref,), reading.parts, reading.asked)

    async def _step(self, state: PostureState, head: int) -> PostureState | None:
        """Some blocks more; None when another daemon was faster."""
        start = state.number + 1
        if head - start > FAR:
            return await self._jump(state, head, f"blocks {start} to {head - 1} passed unseen")
        whole = state.whole or start % WHOLE_EVERY == 0
        stop = (
            start
            if whole
            else min(head, start + self._chunk - 1, start - start % WHOLE_EVERY + WHOLE_EVERY - 1)
        )
        headers, events = await self.reader.headers(start, stop, tuple(state.asked))
        if headers[0].parent != state.trail[-1].hash:
            return await self._rewound(state, head)
        try:
            after = await self._advanced(state, headers, events, whole=whole)
        except RpcError as error:
            if is_revert(error) or head - start <= WHOLE_EVERY:
                raise
            return await self._jump(
                state, head, f"blocks {start} to {head - 1} cannot be read any more: {error}"
            )
        calm = after.seq == state.seq and after.number == stop
        self._chunk = min(self._chunk * 2, CHUNK) if calm else 1
        return await self._keep(after)

    async def _advanced(
        self,
        state: PostureState,
        headers: Sequence[BlockHeader],
        events: Sequence[WatchedEvent],
        *,
        whole: bool,
    ) -> PostureState:
        """The state at the last of these blocks, or at the first one with a change: from there everything
        may be another's to ask."""
        announced, plan = await self._announced(), plan_of(state.asked)
        readings = (
            [None] if whole else await self.reader.read([one.ref for one in headers], plan, state.parts)
        )
        for header, found in zip(headers, readings, strict=True):
            own = [one for one in events if one.block == header.ref.number]
            base = folded(state.parts, own)
            if found is not None:
                base = {**carried(base, plan), **found.parts}
            calm = found is not None and not any(
                name_of(one.part) != INVARIANT for one in compared(state.parts, base)
            )
            reading = (
                replace(found, parts=base, asked=state.asked)
                if calm and found is not None
                else await self.reader.whole(header.ref, base)
            )
            await self._problems(reading)
            state = advance(state, header.ref, reading, own, announced)
            if not calm:
                break
        return state

    async def _rewound(self, state: PostureState, head: int) -> PostureState | None:
        """Back to the last block that is still on the chain."""
        _, there = await self.reader.head([one.number for one in state.trail])
        common = [one.number for one in state.trail if one in there]
        if not common:
            return await self._jump(
                state, head, f"the chain was reorganised by more than {len(state.trail)} blocks"
            )
        if common[-1] == state.number:
            return state
        return await self._keep(state.rewind(common[-1]))

    async def _jump(self, state: PostureState, head: int, why: str) -> PostureState | None:
        """Compare the newest block with the last one that was seen; what came and went between is lost."""
        await self._say(f"{why}: only what differs at block {head} is told")
        (header,), events = await self.reader.headers(head, head, tuple(state.asked))
        reading = await self.reader.whole(header.ref, folded(state.parts, events))
        await self._problems(reading)
        before = (BlockRef(head - 1, header.parent),)
        bare = replace(state, trail=before, told=(), lost=(), lost_until=0, false={})
        return await self._keep(advance(bare, header.ref, reading, events, await self._announced()))

    async def _announced(self) -> Announcements:
        now = self._clock.now()
        spoken = {one["part"].lower(): one["why"] for one in await expected(self._facts, self._name, now)}
        return Announcements(frozenset(one.lower() for one in self._watch.expected), spoken)

    async def _keep(self, state: PostureState) -> PostureState | None:
        if not await self._store(state):
            return None
        return await self._delivered(state) if state.outbox else state

    async def _store(self, state: PostureState) -> bool:
        """False when another daemon has moved the state since it was loaded."""
        text = state.dumps()
        if not await self._facts.swap(KEY + self._name, self._stored or None, text):
            return False
        self._stored = text
        return True

    async def _delivered(self, state: PostureState) -> PostureState | None:
        """Write each telling, and fire; TryAgain keeps the outbox when the sink takes none of it."""
        at = iso(self._clock.now())
        for one in state.outbox:
            place = f"{self._name}:{one.seq % RING:03d}"
            before = await self._facts.get(TOLD + place)
            if before is None or json.loads(before)["mark"] != one.mark:
                await self._facts.put(SNAPSHOT + place, json.dumps(dict(one.parts)))
                told = {**asdict(replace(one, parts={})), "mark": one.mark, "at": at}
                await self._facts.put(TOLD + place, json.dumps(told))
            keys = [(name, event_key(name, EVENT, one.block, one.mark)) for name in self._subscribers(EVENT)]
            if any(change.name in CODE_PARTS for change in one.changes):
                keys += [
                    (name, event_key(name, CODE_EVENT, one.block, one.mark))
                    for name in self._subscribers(CODE_EVENT)
                ]
            if keys and not await self.fire(keys, f"{spoken(one)} at block {one.block}"):
                raise TryAgain("what changed of the posture waits: no firing was taken")
        state = replace(state, outbox=())
        return state if await self._store(state) else None

    async def _problems(self, reading: PostureReading) -> None:
        """Say what cannot be read or judged when it appears or changes."""
        for part, why in reading.unread.items():
            if self._unread.get(part) != why:
                verb = "judged" if name_of(part) == INVARIANT else "readable, and counts as unchanged"
                await self._say(f"{part} is not {verb}: {why}")
        self._unread = reading.unread

    async def _say(self, reason: str) -> None:
        await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@{EVENT}", reason))


def spoken(one: Telling) -> str:
    """What kinds of change it holds, in a few words."""
    names = ", ".join(dict.fromkeys(change.name for change in one.changes))
    return f"{names} as before a reorganisation" if one.undoes else f"{names} changed"
