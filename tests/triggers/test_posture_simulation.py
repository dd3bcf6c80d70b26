"""A watch over simulated changes: announced, silent, undone, reorganised, with a daemon that is killed at
any step.

`POSTURE_BLOCKS` makes it longer, `POSTURE_SEED` another one; `make bench-watch` runs 1,000 blocks.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fleet.chain.node.rpc import Rpc
from fleet.config.watch import WatchSection
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.surfaces.posture import GAS, encoded, slot, view, word
from fleet.triggers.chain.telling import EXPECTED
from tests.triggers.watched import NAME, WatchedChain, watched

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

BLOCKS = int(os.environ.get("POSTURE_BLOCKS", "150"))
PEOPLE = [f"0x{one * 20}" for one in ("a1", "a2", "a3", "a4")]
CODES = [f"0x{one * 20}" for one in ("c1", "c2", "c3", "c4", "c5", "c6")]
PROMISED = "0x" + "ce" * 20
ROLE = "0x" + "71" * 32
CALL_SCHEDULED = "CallScheduled(bytes32,uint256,address,uint256,bytes,bytes32,uint256)"
CALL_EXECUTED = "CallExecuted(bytes32,uint256,address,uint256,bytes)"

KINDS = [
    *["quiet"] * 6,
    "upgrade",
    "promised",
    "owner",
    "pause",
    "role",
    "safe",
    "delay",
    "queue",
    "execute",
    "cut",
    "cut",
]
JUDGED = {"promised": "announced by the profile", "delay": "announced by a person (ticket 7)"}

Event = tuple[str | bytes, ...]
"""Its signature, then topics."""
Write = tuple[str, dict[bytes, bytes], Event, bytes]
"""Contract, slots, event, the event's data."""
Drawn = tuple[list[Write], dict[str, str], str]
"""Transactions of one block, the values that they give to parts, and how these changes must be judged."""


@dataclass
class Truth:
    """What the contracts are made to be, and what an operator must be told of it."""

    proxy: str
    safe: str
    lock: str
    parts: dict[str, str] = field(default_factory=dict)
    facets: dict[str, str] = field(default_factory=dict)
    """Facet by selector."""
    height: int = 0
    chain: list[tuple[int, list[tuple[str, str, str, str]]]] = field(default_factory=list)
    """By block: part, before, after, how it must be judged."""
    queue: int = 0

    def change(self, number: int, after: Mapping[str, str], judged: str) -> None:
        """Note that these parts are so from this block on; "" is gone."""
        self.height = number
        made = []
        for part, value in after.items():
            before = self.parts.pop(part, "")
            if value:
                self.parts[part] = value
            if " selector " in part:
                self.facets.pop(part[-10:], None)
                self.facets |= {part[-10:]: value} if value else {}
            if before != value:
                how = judged if " queued " not in part else f"announced by its event {judged.split(':')[-1]}"
                made.append((part, before, value, how.split(":")[0]))
        if made:
            self.chain.append((number, made))


@dataclass
class Simulation:
    """Draws blocks from a seed, and knows what they must be told as."""

    at: WatchedChain
    truth: Truth
    chance: Random
    told: Counter[tuple[str, ...]] = field(default_factory=Counter)
    due: Counter[tuple[str, ...]] = field(default_factory=Counter)
    seen: list[tuple[int, list[tuple[str, str, str, str]]]] = field(default_factory=list)
    """What a look has told, on the present branch."""
    gone: list[tuple[str, str, str, str]] = field(default_factory=list)
    """What was told, and is on no branch now."""
    ways: Counter[str] = field(default_factory=Counter)

    async def block(self, writes: list[Write]) -> int:
        """One block with these transactions."""
        rpc = self.at.rpc
        if not writes:
            await rpc.call("evm_mine")
        elif len(writes) == 1:
            to, slots, event, data = writes[0]
            await self.at.write(to, slots, event, data)
        else:
            await rpc.call("evm_setAutomine", [False])
            for to, slots, event, data in writes:
                tx = node.transaction(self.at.sender, to, encoded(slots, event, data), gas=GAS)
                await rpc.call("eth_sendTransaction", [tx])
            await rpc.call("evm_mine")
            await rpc.call("evm_setAutomine", [True])
        return int(await rpc.call("eth_blockNumber"), 16)

    def drawn(self) -> Drawn:
        """The transactions of one block, the parts that they change, and how these must be judged."""
        kind = self.chance.choice(KINDS)
        self.ways[kind] += 1
        if kind in ("queue", "execute"):
            return self._queue(kind)
        if kind == "cut":
            return self._cut(silent=self.chance.random() < 0.5)
        if kind == "quiet":
            return [], {}, ""
        return self._set(kind, silent=self.chance.random() < 0.5)

    def _set(self, kind: str, *, silent: bool) -> Drawn:
        """One part, with the event that says it or without."""
        one, code, who = self.truth, self.chance.choice(CODES), self.chance.choice(PEOPLE)
        number, stop = self.chance.randrange(1, 9), one.parts[f"{one.proxy} paused"] == "false"
        member = f"role {ROLE} {who}"
        granted = f"{one.proxy} {member}" in one.parts
        role = ("RoleRevoked" if granted else "RoleGranted", bytes.fromhex(ROLE[2:]), who)
        owner = ("OwnershipTransferred(address,address)", PEOPLE[0], who)
        drawn: dict[str, tuple[str, str, str, dict[bytes, bytes], Event]] = {
            "upgrade": (
                one.proxy,
                "implementation",
                code,
                slot("implementation", code),
                ("Upgraded(address)", code),
            ),
            "promised": (one.proxy, "implementation", PROMISED, slot("implementation", PROMISED), ()),
            "owner": (one.proxy, "owner", who, view("owner()", ["address"], who), owner),
            "pause": (
                one.proxy,
                "paused",
                str(stop).lower(),
                view("paused()", ["bool"], stop),
                ("Paused(address)" if stop else "Unpaused(address)",),
            ),
            "role": (
                one.proxy,
                member,
                "" if granted else "member",
                {},
                (f"{role[0]}(bytes32,address,address)", *role[1:]),
            ),
            "safe": (
                one.safe,
                "threshold",
                str(number),
                view("getThreshold()", ["uint256"], number),
                ("ChangedThreshold(uint256)",),
            ),
            "delay": (one.lock, "delay", str(number), view("getMinDelay()", ["uint256"], number), ()),
        }
        to, name, value, slots, event = drawn[kind]
        said = str(event[0]).partition("(")[0] if event else ""
        judged = JUDGED.get(kind, f"announced by its event {said}")
        if silent and kind not in ("role", *JUDGED):
            judged, event = "silent", ()
        return [(to, slots, event, b"")], {f"{to} {name}": value}, judged

    def _queue(self, kind: str) -> Drawn:
        """An operation is queued in the timelock, or one that was is executed: an upgrade."""
        one, code = self.truth, self.chance.choice(CODES)
        queued = [part for part in one.parts if " queued " in part]
        if kind == "queue" or not queued:
            one.queue += 1
            event: Event = (CALL_SCHEDULED, word(one.queue), word(0))
            part = f"{one.lock} queued 0x{one.queue:064x}"
            return [(one.lock, {}, event, word(one.proxy))], {part: one.proxy}, ":CallScheduled"
        part = self.chance.choice(queued)
        event = (CALL_EXECUTED, bytes.fromhex(part[-64:]), word(0))
        return (
            [(one.lock, {}, event, word(one.proxy)), (one.proxy, slot("implementation", code), (), b"")],
            {part: "", f"{one.proxy} implementation": code},
            f"announced by the timelock {one.lock}:CallExecuted",
        )

    def _cut(self, *, silent: bool) -> Drawn:
        """Selectors added, replaced and removed at once."""
        one, after = self.truth, dict[str, str]()
        facets = dict(one.facets)
        for number in self.chance.sample(range(1, 9), 3):
            selector = f"0x{number:08x}"
            facet = self.chance.choice(["", *CODES[:3]])
            facets.pop(selector, None)
            if facet:
                facets[selector] = facet
            after[f"{one.proxy} selector {selector}"] = facet
        event: Event = () if silent else ("DiamondCut((address,uint8,bytes4[])[],address,bytes)",)
        writes = [(one.proxy, facet_view(facets), event, b"")]
        return writes, after, "silent" if silent else "announced by its event DiamondCut"

    async def step(self, drawn: Drawn | None = None) -> Drawn:
        """One more block; what it was drawn as."""
        made = drawn or self.drawn()
        writes, after, judged = made
        self.truth.change(await self.block(writes), after, judged)
        return made

    async def look(self) -> None:
        """A look of a daemon that may be killed in it; note what it must tell."""
        self.at.facts.dies = self.chance.choice([-1, 0, 1, 2, 3])
        self.at.facts.after = self.chance.random() < 0.5
        if self.chance.random() < 0.2:
            self.at.restart()
        for text in await self.at.look():
            self.told[text.split(": ", 1)[1],] += 1
        self.at.facts.dies = -1
        for number, changes in self.truth.chain[len(self.seen) :]:
            for change in changes:
                if (same := next((one for one in self.gone if one[:3] == change[:3]), None)) is not None:
                    self.gone.remove(same)
                else:
                    self.due[said(change),] += 1
            self.seen.append((number, changes))
        for change in self.gone:
            self.due[f"taken back by a reorganisation: {said(change)}",] += 1
        self.gone = []

    async def reorganise(self) -> None:
        """Some blocks, of which some are looked at, and others in their place, of which some make the
        same."""
        rpc, chance = self.at.rpc, self.chance
        await self.look()
        mark, truth = await rpc.call("evm_snapshot"), deepcopy(self.truth)
        before = len(self.seen)
        made = [await self.step() for _ in range(chance.randrange(1, 6))]
        top = int(await rpc.call("eth_blockNumber"), 16)
        if chance.random() < 0.8:
            await self.look()
        assert await rpc.call("evm_revert", [mark]) is True
        self.gone = [one for _, changes in self.seen[before:] for one in changes]
        truth.queue = self.truth.queue
        self.truth, self.seen = truth, self.seen[:before]
        await rpc.call("evm_increaseTime", [7])
        await rpc.call("evm_mine")
        for one in made[: chance.randrange(len(made) + 1)]:
            await self.step(one)
        while int(await rpc.call("eth_blockNumber"), 16) <= top:
            await rpc.call("evm_mine")
        self.ways["reorganisation"] += 1
        await self.look()

    async def run(self, blocks: int) -> None:
        start = await self.at.rpc.head()
        while await self.at.rpc.head() < start + blocks:
            if self.chance.random() < 0.06:
                await self.reorganise()
                continue
            await self.step()
            if self.chance.random() < 0.3:
                await self.look()
        await self.look()


def said(change: tuple[str, str, str, str]) -> str:
    part, before, after, judged = change
    return f"{judged}: {part}: {before or 'none'} → {after or 'none'}"


def facet_view(facets: Mapping[str, str]) -> dict[bytes, bytes]:
    """`facets()` with these selectors."""
    grouped: dict[str, list[bytes]] = {}
    for selector, facet in facets.items():
        grouped.setdefault(facet, []).append(bytes.fromhex(selector[2:]))
    return view("facets()", ["(address,bytes4[])[]"], list(grouped.items()))


@pytest.fixture
async def simulation(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Callable[[int], Any]]:
    async with Anvil(tmp_path / "chain.json", history=256) as anvil, Rpc(anvil.url) as rpc:

        async def make(seed: int) -> Simulation:
            sender = (await rpc.call("eth_accounts"))[0]
            proxy, safe, lock = [await watched(rpc, sender) for _ in range(3)]
            truth = Truth(proxy, safe, lock)
            section = WatchSection(
                contracts=(truth.proxy, truth.safe, truth.lock),
                expected=(f"{truth.proxy} implementation {PROMISED}",),
            )
            at = WatchedChain(rpc, sender, section)
            await at.facts.put(
                EXPECTED + NAME,
                json.dumps(
                    [{"part": f"{truth.lock} delay", "why": "ticket 7", "until": "9999-01-01T00:00:00Z"}]
                ),
            )
            made = Simulation(at, truth, Random(seed))
            first = {"0x00000001": CODES[0]}
            truth.facets = dict(first)
            slots = slot("implementation", CODES[0]) | view("owner()", ["address"], PEOPLE[0])
            slots |= view("paused()", ["bool"], False) | facet_view(first)
            await at.write(truth.proxy, slots)
            await at.write(truth.safe, view("getThreshold()", ["uint256"], 2))
            await at.write(truth.lock, view("getMinDelay()", ["uint256"], 3600))
            truth.parts = {
                f"{truth.proxy} implementation": CODES[0],
                f"{truth.proxy} owner": PEOPLE[0],
                f"{truth.proxy} paused": "false",
                f"{truth.proxy} selector 0x00000001": CODES[0],
                f"{truth.safe} threshold": "2",
                f"{truth.lock} delay": "3600",
            }
            assert await at.look() == []
            return made

        yield make


@pytest.mark.timeout(1800)
async def test_each_change_is_told_once_and_none_is_missed(simulation: Callable[[int], Any]) -> None:
    one: Simulation = await simulation(int(os.environ.get("POSTURE_SEED", "35")))
    await one.run(BLOCKS)
    assert one.told == one.due
    assert all(count == 1 for key, count in Counter(one.at.sink.keys).items())
    assert one.at.sink.skips == []
    if output := os.environ.get("POSTURE_FIGURES"):
        figures: dict[str, Any] = {"blocks": BLOCKS, "ways": one.ways, "changing": one.at.asked()}
        for name, looks in (("each", 128), ("caught up", 1)):
            await one.look()
            for at in range(1, 129):
                await one.at.rpc.call("evm_mine")
                if at % (128 // looks) == 0:
                    await one.look()
            figures[name] = one.at.asked()
        figures |= {"due": sum(one.due.values()), "told": sum(one.told.values())}
        figures["kinds"] = Counter(key[0].split(":")[0].split(" by ")[0] for key in one.due.elements())
        Path(output).write_text(json.dumps(figures, indent=1))
