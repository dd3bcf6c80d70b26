"""The fleet's state of the chain, and the events that follow from one more look. Pure; stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fleet.chain.node.abi import FEEDBACK_CLEARED, FEEDBACK_SUBMITTED, REGISTERED

DIAMOND_CUT = "0x8faa70878671ccd212d20771b795c50af8fd3ff6cf27f4bde57e5d4de0aeb673"
"""topic0 of `DiamondCut((address,uint8,bytes4[])[],address,bytes)`, EIP-2535."""
TOPICS = (REGISTERED, FEEDBACK_SUBMITTED, FEEDBACK_CLEARED, DIAMOND_CUT)

TRAIL = 64
"""Number of block hashes to remember: dense for recent blocks, sparse for older ones."""
IDS = 4096
"""Number of registrations to remember, so that a reorg does not fire them again."""
DEEP = 1000
"""Blocks to read again when no remembered block is left on the chain."""


@dataclass(frozen=True, slots=True)
class BlockRef:
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class DiamondLog:
    """One event of the diamond; `ident` is the id of a registration."""

    topic: str
    block: BlockRef
    index: int
    ident: int = 0

    @property
    def mark(self) -> str:
        """Log index and block hash: after a reorg the same index holds another event."""
        return f"{self.index}-{self.block.hash.removeprefix('0x')[:8]}"


@dataclass(frozen=True, slots=True)
class ChainEvent:
    """An event, by the name that personas subscribe to. `mark` distinguishes it from others."""

    name: str
    block: int
    mark: str


@dataclass(frozen=True, slots=True)
class ChainSnapshot:
    """The chain at one block; unreadable parts are None. `lines` are the events after the cursor."""

    block: BlockRef
    facets: str | None = None
    count: int | None = None
    balance: int | None = None
    lines: tuple[DiamondLog, ...] | None = None


@dataclass(frozen=True, slots=True)
class WatchState:
    """The stored state. `cursor` is the last block whose events were read; `trail` proves the chain.

    `outbox` holds events to deliver. It is stored with the cursor, before the first delivery, so that a crash
    repeats only the same keys. `facets` is "" and `count` -1 until first read.
    """

    genesis: str
    cursor: int
    trail: tuple[BlockRef, ...] = ()
    facets: str = ""
    count: int = -1
    low: bool = False
    rewound: bool = False
    ids: tuple[tuple[int, int], ...] = ()  # (block, id) of registrations that fired
    outbox: tuple[ChainEvent, ...] = ()

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> WatchState:
        """Parse the output of `dumps`; ValueError for anything else."""
        try:
            raw: dict[str, Any] = json.loads(text)
            raw["trail"] = tuple(BlockRef(**block) for block in raw["trail"])
            raw["outbox"] = tuple(ChainEvent(**event) for event in raw["outbox"])
            raw["ids"] = tuple((block, ident) for block, ident in raw["ids"])
            return cls(**raw)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a cursor: {error}") from None

    def rewind(self, true: Sequence[BlockRef]) -> WatchState:
        """The state after a reorg, at the last block of the trail that is still on the chain (in `true`)."""
        common = [block for block in self.trail if block in true]
        oldest = self.trail[0].number if self.trail else self.cursor
        cursor = common[-1].number if common else max(oldest - DEEP, 0)
        return replace(self, trail=tuple(common), cursor=cursor, rewound=True)

    def skip_to(self, number: int) -> WatchState:
        """Give up the events up to this block."""
        return replace(self, cursor=max(number, self.cursor))


def baseline(genesis: str, look: ChainSnapshot, low_wei: int) -> WatchState:
    """The state after the first look: nothing existing is an event, except a low sponsor balance."""
    start = WatchState(genesis, look.block.number)
    return advance(start, replace(look, lines=()), low_wei)


def advance(seen: WatchState, look: ChainSnapshot, low_wei: int) -> WatchState:
    """The state after one more look, with its events in the outbox."""
    events = [
        *_facets(seen, look),
        *(ChainEvent("registered", line.block.number, line.mark) for line in _fresh(seen, look)),
        *_log(seen, look),
        *_sponsor(seen, look, low_wei),
    ]
    after = replace(
        seen,
        facets=look.facets or seen.facets,
        count=seen.count if look.count is None else look.count,
        low=seen.low if look.balance is None else look.balance < low_wei,
        outbox=seen.outbox + tuple(events),
    )
    if look.lines is None:
        return after
    trail = _thinned((*[old for old in seen.trail if old.number < look.block.number], look.block))
    fired = seen.ids + tuple((line.block.number, line.ident) for line in _fresh(seen, look))
    return replace(
        after,
        cursor=look.block.number,
        trail=trail,
        ids=tuple(pair for pair in fired if pair[0] > trail[0].number - DEEP)[-IDS:],
        rewound=False,
    )


def _facets(seen: WatchState, look: ChainSnapshot) -> list[ChainEvent]:
    if not seen.facets or look.facets is None or look.facets == seen.facets:
        return []
    cuts = _lines(look, DIAMOND_CUT)  # without any, the look's own block is the best estimate
    return [ChainEvent("facets-changed", (cuts[-1].block if cuts else look.block).number, look.facets[:12])]


def _fresh(seen: WatchState, look: ChainSnapshot) -> list[DiamondLog]:
    """Registrations that have not fired; an id that a reorg moved to another block has."""
    known = {ident for _, ident in seen.ids}
    found: dict[int, DiamondLog] = {}
    for line in _lines(look, REGISTERED):
        if line.ident not in known:
            found.setdefault(line.ident, line)
    return list(found.values())


def _log(seen: WatchState, look: ChainSnapshot) -> list[ChainEvent]:
    """Growth and clearing, by the count; events reveal a log that was cleared and has filled up again."""
    if seen.count < 0 or look.count is None:
        return []
    clears, posts = _lines(look, FEEDBACK_CLEARED), _lines(look, FEEDBACK_SUBMITTED)
    cleared = bool(clears) or (look.count < seen.count and not seen.rewound)
    grew = look.count > (0 if cleared else seen.count)
    moved = look.count != seen.count or (seen.rewound and bool(posts))
    happened = {"log-grew": grew, "log-cleared": cleared, "log-changed": grew or cleared or moved}
    last = max((*clears, *posts), key=lambda line: (line.block.number, line.index), default=None)
    block, mark = (last.block.number, last.mark) if last else (look.block.number, f"count{look.count}")
    return [ChainEvent(name, block, mark) for name, true in happened.items() if true]


def _sponsor(seen: WatchState, look: ChainSnapshot, low_wei: int) -> list[ChainEvent]:
    if look.balance is None or seen.low or look.balance >= low_wei:
        return []
    return [ChainEvent("sponsor-low", look.block.number, look.block.hash.removeprefix("0x")[:12])]


def _lines(look: ChainSnapshot, topic: str) -> list[DiamondLog]:
    return [line for line in look.lines or () if line.topic == topic]


def _thinned(trail: tuple[BlockRef, ...]) -> tuple[BlockRef, ...]:
    """Drop every second entry of the older half when there are too many; keep the oldest."""
    if len(trail) <= TRAIL:
        return trail
    older, newer = trail[: TRAIL // 2], trail[TRAIL // 2 :]
    return older[::2] + newer
