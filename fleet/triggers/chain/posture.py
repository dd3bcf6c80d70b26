"""The posture of watched contracts, and what changes it from block to block. Pure; stored as JSON.

A posture is flat: `0xCONTRACT PART` and its value, such as `0x… owner` or `0x… selector 0x12345678`. So a
change is a difference of two tables, and a part that a contract does not have is not there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fleet.chain.node.digest import ZERO_ADDRESS, keccak256
from fleet.triggers.chain.state import TRAIL, BlockRef
from fleet.triggers.chain.telling import (
    INVARIANT,
    NONE,
    UNREADABLE,
    Judged,
    PostureChange,
    Telling,
    name_of,
    telling_of,
)

MOST_PARTS = 4_096
"""Parts of one posture at most: a contract names its own facets, and anybody may fill a queue."""
PROOF = 3
"""Blocks in a row at which an invariant must be false."""
CODE_PARTS = frozenset({"implementation", "beacon", "beacon-implementation", "code"})
"""Parts after whose change other code answers, besides a diamond's selectors."""


def topic(signature: str) -> str:
    """topic0 of an event."""
    return "0x" + keccak256(signature.encode()).hex()


ROLE_GRANTED = topic("RoleGranted(bytes32,address,address)")
ROLE_REVOKED = topic("RoleRevoked(bytes32,address,address)")
SCHEDULED = topic("CallScheduled(bytes32,uint256,address,uint256,bytes,bytes32,uint256)")
EXECUTED = topic("CallExecuted(bytes32,uint256,address,uint256,bytes)")
CANCELLED = topic("Cancelled(bytes32)")
_SAYS: Mapping[str, tuple[str, ...]] = {
    "implementation": ("Upgraded(address)",),
    "admin": ("AdminChanged(address,address)",),
    "beacon": ("BeaconUpgraded(address)",),
    "beacon-implementation": ("Upgraded(address)",),
    "selector": ("DiamondCut((address,uint8,bytes4[])[],address,bytes)",),
    "owner": ("OwnershipTransferred(address,address)",),
    "pending-owner": ("OwnershipTransferStarted(address,address)", "OwnershipTransferred(address,address)"),
    "paused": ("Paused(address)", "Unpaused(address)"),
    "delay": ("MinDelayChange(uint256,uint256)",),
    "safe-owners": ("AddedOwner(address)", "RemovedOwner(address)"),
    "threshold": ("ChangedThreshold(uint256)",),
    "role": ("RoleGranted(bytes32,address,address)", "RoleRevoked(bytes32,address,address)"),
    "queued": (
        "CallScheduled(bytes32,uint256,address,uint256,bytes,bytes32,uint256)",
        "CallExecuted(bytes32,uint256,address,uint256,bytes)",
        "Cancelled(bytes32)",
    ),
}
"""Events of the contract itself that say a change, by part."""
EVENTS: Mapping[str, Mapping[str, str]] = {
    part: {topic(one): one.partition("(")[0] for one in said} for part, said in _SAYS.items()
}
TOPICS = tuple(dict.fromkeys(one for said in EVENTS.values() for one in said))
PRIVILEGED = frozenset({"owner", "pending-owner", "admin", "safe-owners", "role"})
"""Parts whose values are accounts that may change something."""
BEHIND = frozenset({"implementation", "beacon", "beacon-implementation", "selector"})
"""Parts whose values are contracts that answer for another."""


@dataclass(frozen=True, slots=True)
class WatchedEvent:
    """One event of a watched contract; `data` are the bytes behind its topics."""

    address: str
    block: int
    index: int
    topics: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class PostureState:
    """The stored state, up to block `trail[-1]`. `told` are the changes that a reorganisation can still take
    back; `lost` those that one did, until the new branch is as long as the old (`lost_until`): what it makes
    again is the same change, and is not told twice. `false` is since which block an invariant is false
    without a break. `asked` are the questions that each address answers, of which all are asked again at the
    next block if `whole`; `outbox` waits for delivery.
    """

    genesis: str
    trail: tuple[BlockRef, ...]
    parts: Mapping[str, str]
    asked: Mapping[str, tuple[str, ...]]
    whole: bool = False
    seq: int = 0
    told: tuple[Telling, ...] = ()
    lost: tuple[Telling, ...] = ()
    lost_until: int = 0
    false: Mapping[str, int] = field(default_factory=dict)
    outbox: tuple[Telling, ...] = ()

    @property
    def number(self) -> int:
        """The last block that was looked at."""
        return self.trail[-1].number

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> PostureState:
        """Parse the output of `dumps`; ValueError for anything else."""
        try:
            raw: dict[str, Any] = json.loads(text)
            raw["trail"] = tuple(BlockRef(**one) for one in raw["trail"])
            raw["asked"] = {address: tuple(names) for address, names in raw["asked"].items()}
            for key in ("told", "lost", "outbox"):
                raw[key] = tuple(telling_of(one) for one in raw[key])
            return cls(**raw)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a posture: {error}") from None

    def telling(self, block: BlockRef, changes: Sequence[PostureChange], *, undoes: int = 0) -> PostureState:
        """With one more thing to tell."""
        one = Telling(self.seq + 1, block.number, block.hash, tuple(changes), undoes, self.parts)
        light = () if undoes else (replace(one, parts={}),)
        return replace(self, seq=one.seq, outbox=(*self.outbox, one), told=(*self.told, *light))

    def rewind(self, common: int) -> PostureState:
        """The state at an earlier block of the trail, the last that is still on the chain."""
        gone = tuple(one for one in self.told if one.block > common)
        parts = dict(self.parts)
        for change in (one for telling in reversed(gone) for one in reversed(telling.changes)):
            parts.pop(change.part, None)
            if change.before:
                parts[change.part] = change.before
        return replace(
            self,
            trail=tuple(one for one in self.trail if one.number <= common),
            parts=parts,
            whole=True,
            told=tuple(one for one in self.told if one.block <= common),
            lost=(*self.lost, *gone),
            lost_until=max(self.lost_until, self.number),
            false={name: since for name, since in self.false.items() if since <= common},
        )

    def settled(self) -> PostureState:
        """At the newest block: what the new branch has not made again is taken back, once it is as long as
        the old."""
        if not self.lost or self.number < self.lost_until:
            return self
        state, lost = replace(self, lost=(), lost_until=0), self.lost
        for one in lost:
            if one.changes:
                state = state.telling(self.trail[-1], one.changes, undoes=one.seq)
        return state


def privileged(parts: Mapping[str, str]) -> dict[str, None]:
    """Accounts that may change something, in order of their parts."""
    found = dict[str, None]()
    for part, value in parts.items():
        if name_of(part) in PRIVILEGED:
            names = part.split(" ")[3:] if name_of(part) == "role" else value.split(",")
            found |= dict.fromkeys(one for one in names if one.startswith("0x") and one != ZERO_ADDRESS)
    return found


def behind(parts: Mapping[str, str]) -> dict[str, None]:
    """Contracts that answer for another."""
    values = (value for part, value in parts.items() if name_of(part) in BEHIND)
    return dict.fromkeys(value for value in values if value not in (NONE, UNREADABLE, ZERO_ADDRESS))


def folded(parts: Mapping[str, str], events: Iterable[WatchedEvent]) -> dict[str, str]:
    """The parts after these events: members of roles, and queues of timelocks, which no view lists."""
    after = dict(parts)
    for one in events:
        known, head = len(one.topics), one.topics[0]
        if head in (ROLE_GRANTED, ROLE_REVOKED) and known >= 3:
            part = f"{one.address} role {one.topics[1]} 0x{one.topics[2][-40:]}"
            after.pop(part, None)
            if head == ROLE_GRANTED:
                after[part] = "member"
        elif head in (SCHEDULED, EXECUTED, CANCELLED) and known >= 2:
            part = f"{one.address} queued {one.topics[1]}"
            if head == SCHEDULED:
                calls = [*filter(None, after.get(part, "").split(",")), target_of(one.data)]
                after[part] = ",".join(dict.fromkeys(calls))
            else:
                after.pop(part, None)
    return after


def target_of(data: bytes) -> str:
    """The target of a timelock's call: the first word of its event's data."""
    return "0x" + data[12:32].hex()


def compared(before: Mapping[str, str], after: Mapping[str, str]) -> list[PostureChange]:
    """Every part that differs."""
    parts = dict.fromkeys((*before, *after))
    return [
        PostureChange(part, before.get(part, ""), after.get(part, ""))
        for part in parts
        if before.get(part) != after.get(part)
    ]


@dataclass(frozen=True, slots=True)
class Announcements:
    """What may announce a change: the profile's words, and a person's (part or part and value: the
    reason)."""

    profile: Collection[str] = ()
    operator: Mapping[str, str] = field(default_factory=dict)

    def judged(
        self, change: PostureChange, events: Sequence[WatchedEvent], before: Mapping[str, str]
    ) -> PostureChange:
        """Announced by the profile, a person, a timelock's operation of an earlier block, or an event of the
        contract; else silent."""
        whole = f"{change.part} {change.after or NONE}"
        if change.part in self.profile or whole in self.profile:
            return replace(change, judged="announced", by="the profile")
        if why := self.operator.get(whole) or self.operator.get(change.part):
            return replace(change, judged="announced", by=f"a person ({why})")
        address = change.part.partition(" ")[0]
        targets = {address, before.get(f"{address} admin", "")}
        for one in events:
            queued = f"{one.address} queued {one.topics[1]}" if len(one.topics) > 1 else ""
            if one.topics[0] == EXECUTED and queued in before and target_of(one.data) in targets:
                return replace(change, judged="announced", by=f"the timelock {one.address}")
        own = EVENTS.get(change.name, {})
        said = next(
            (own[one.topics[0]] for one in events if one.address == address and one.topics[0] in own), ""
        )
        return replace(change, judged="announced", by=f"its event {said}") if said else change


@dataclass(frozen=True, slots=True)
class PostureReading:
    """What was read at one block: parts, the questions that each address answers, and of the invariants
    those that were decided. `unread` says why an invariant, or a part, was not: the part is as before."""

    parts: Mapping[str, str] = field(default_factory=dict)
    decided: Mapping[str, bool] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def advance(
    state: PostureState,
    block: BlockRef,
    reading: PostureReading,
    events: Sequence[WatchedEvent],
    announced: Announcements,
) -> PostureState:
    """The state after one more block, of which `reading` has every part but the invariants.

    What is watched from now on, or no longer, has not changed.
    """
    false = {name: since for name, since in state.false.items() if reading.decided.get(name) is not True}
    false |= {
        name: block.number for name, holds in reading.decided.items() if not holds and name not in false
    }
    verdicts = {part: value for part, value in state.parts.items() if name_of(part) == INVARIANT}
    for name, holds in reading.decided.items():
        if holds or block.number - false[name] >= PROOF - 1:
            verdicts[f"{INVARIANT} {name}"] = "holds" if holds else "broken"
    after = {**reading.parts, **verdicts}
    changes, same = [], {*state.asked} & {*reading.asked}
    for change in compared(state.parts, after):
        if change.name == INVARIANT:
            judged: Judged = "broken" if change.after == "broken" else "restored"
            changes += [replace(change, judged=judged)] if change.before or judged == "broken" else []
        elif change.part.partition(" ")[0] in same:
            changes.append(announced.judged(change, events, state.parts))
    new, again, lost = _made_again(changes, state.lost)
    trail = (*state.trail, block)[-TRAIL:]
    told = (*state.told, *(replace(one, block=block.number, hash=block.hash) for one in again))
    state = replace(
        state,
        trail=trail,
        parts=after,
        asked=reading.asked,
        whole=False,
        told=tuple(one for one in told if one.block >= trail[0].number),
        lost=lost,
        false=false,
    )
    return state.telling(block, new) if new else state


def _made_again(
    changes: Sequence[PostureChange], lost: Sequence[Telling]
) -> tuple[list[PostureChange], list[Telling], tuple[Telling, ...]]:
    """Changes that are new; what was reported of a block that a reorganisation took, and is now in this one;
    the rest of what it took."""
    new, again, left = list[PostureChange](), list[Telling](), list(lost)
    for change in changes:
        key = (change.part, change.before, change.after)
        for at, one in enumerate(left):
            known = [each for each in one.changes if (each.part, each.before, each.after) == key]
            if known:
                again.append(replace(one, changes=(known[0],)))
                left[at] = replace(one, changes=tuple(each for each in one.changes if each is not known[0]))
                break
        else:
            new.append(change)
    return new, again, tuple(one for one in left if one.changes)
