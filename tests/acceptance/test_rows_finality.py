"""An entry is on the log for good, or it is posted again: deep reorgs on a real chain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.log.reputation_log import ReputationLog
from fleet.chain.ports import FeedbackPort
from fleet.devnet.deploy import deploy_registries
from fleet.findings.records import ItemRecord, write_record
from fleet.runs.context import FleetContext
from fleet.runs.run import fire
from fleet.runs.settlement.finality import PostingSide, look_at_posts
from fleet.store.rows import EffectRow, FindingRow
from tests.acceptance.conftest import House, persona, probe, step
from tests.crash.farm import post_to_a_registry

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
FINALITY = 3
AT = "2026-11-27T20:00:00Z"


@dataclass
class Posted:
    """One finding that is on the log, and what was told of its entry."""

    house: House
    world: FleetContext
    run: str
    told: list[str] = field(default_factory=list)

    async def row(self) -> FindingRow:
        (row,) = await self.world.journal.findings(self.run)
        return row

    async def effects(self) -> list[EffectRow]:
        return [
            one for one in await self.world.journal.effects(None, ["tx"]) if one.data["purpose"] == "post"
        ]

    async def on_the_log(self) -> list[int]:
        """Where its text stands, under the fleet's name."""
        envelope = (await self.row()).envelope
        entries = await self.world.chain.log.range(0, 10_000)
        return [
            n
            for n, one in enumerate(entries)
            if (one.sender, one.text) == (self.world.chain.identity, envelope)
        ]

    async def reorg(self) -> None:
        """The block of the entry is replaced by an empty one, and so is all that came after it."""
        (effect,) = await self.effects()
        head = await self.world.chain.log.head()
        await self.house.rpc.call("anvil_reorg", [head - effect.data["block"] + 1, []])
        assert await self.on_the_log() == []

    async def mine(self, blocks: int) -> None:
        for _ in range(blocks):
            await self.house.rpc.call("evm_mine")

    async def look(self) -> None:
        await look_at_posts(PostingSide.of(self.world), lambda run, why: self.told.append(f"{run}: {why}"))


@asynccontextmanager
async def posted(
    house: House, tmp_path: Path, *, step_back_s: float = 30.0, registry: bool = False
) -> AsyncIterator[Posted]:
    seen = probe("seen", step("qa_fetch", url="{site}/llms.txt"), expect="result.status == 418")
    one = persona(tmp_path, 'tools = ["qa_fetch"]\nbudget = { calls = 60, reports = 5 }', seen)
    state = await house.state(tmp_path, ("[chain]\n", f"[chain]\nfinality_blocks = {FINALITY}\n"))
    if registry:
        post_to_a_registry(state, await deploy_registries(house.rpc))
    async with house.world(state, one) as world:
        chain = world.platform.chain
        log: FeedbackPort = FeedbackLog(
            house.rpc,
            chain.diamond,
            world.platform.gas,
            world.chain.signer,
            confirmations=chain.confirmations,
            step_back_s=step_back_s,
        )
        log = world.chain.log if registry else log
        world = replace(world, chain=replace(world.chain, log=log))
        report = await fire(world, one)
        assert [row.state for row in report.findings] == ["posted"]
        yield Posted(house, world, report.run)


REGISTRY = pytest.mark.parametrize("registry", [False, True], ids=["diamond", "erc8004"])


async def test_an_entry_that_stands_at_finality_is_looked_at_once(house: House, tmp_path: Path) -> None:
    async with posted(house, tmp_path) as one:
        await one.mine(FINALITY - 1)
        await one.look()
        assert [bool(effect.data.get("final")) for effect in await one.effects()] == [False]
        await one.mine(1)
        await one.look()
        assert [bool(effect.data.get("final")) for effect in await one.effects()] == [True]
        await one.look()
        assert (one.told, len(await one.on_the_log())) == ([], 1)


@REGISTRY
async def test_an_entry_that_a_reorg_took_comes_back_as_the_same_bytes(
    house: House, tmp_path: Path, registry: bool
) -> None:
    async with posted(house, tmp_path, registry=registry) as one:
        before = await one.row()
        await one.reorg()
        await one.mine(FINALITY)
        await one.look()
        (place,) = await one.on_the_log()
        after = await one.row()
        assert (after.tx, after.index) == (before.tx, place)
        assert one.told == [
            f"{one.run}: entry {before.index} was dropped by the chain, and is there again as {place}"
        ]
        await one.mine(FINALITY)
        await one.look()
        assert [bool(effect.data.get("final")) for effect in await one.effects()] == [True]
        assert (len(one.told), await one.on_the_log()) == (1, [place])


@REGISTRY
async def test_an_entry_whose_nonce_is_taken_since_is_posted_anew_once(
    house: House, tmp_path: Path, registry: bool
) -> None:
    async with posted(house, tmp_path, registry=registry) as one:
        before = await one.row()
        await one.reorg()
        await one.world.chain.log.post("something else", charge="none")
        await one.mine(FINALITY)
        await one.look()
        (place,) = await one.on_the_log()
        after = await one.row()
        assert (after.tx != before.tx, after.index) == (True, place)
        assert [effect.state for effect in await one.effects()] == ["failed", "done", "done"]
        for _ in range(2):
            await one.mine(FINALITY)
            await one.look()
        assert (len(one.told), await one.on_the_log()) == (1, [place])


async def test_a_withdrawal_that_a_reorg_took_is_made_again(house: House, tmp_path: Path) -> None:
    async with posted(house, tmp_path, registry=True) as one:
        row = await one.row()
        dismissal = ItemRecord(kind="dismiss", item=row.fingerprint, at=AT, reason="meant so", who="ada")
        await one.world.chain.log.post(write_record(dismissal, surface=row.surface, title=row.title))
        log = one.world.chain.log
        assert isinstance(log, ReputationLog)
        await house.rpc.call("anvil_reorg", [1, []])
        await one.mine(FINALITY)
        for _ in range(2):
            await one.look()
        assert one.told == [": a withdrawal was dropped by the chain, and was made again"]
        assert await log.withdraw_again() == 0


async def test_a_chain_that_steps_back_gets_the_entry_again(house: House, tmp_path: Path) -> None:
    """A node that mines on demand, restarted from an older state: no block comes by itself."""
    async with posted(house, tmp_path, step_back_s=0.0) as one:
        await one.mine(1)
        (effect,) = await one.effects()
        head = await one.world.chain.log.head()
        await house.rpc.call("anvil_rollback", [head - effect.data["block"] + 1])
        assert await one.world.chain.log.head() == effect.data["block"] - 1
        await one.look()
        assert len(await one.on_the_log()) == 1
        await one.mine(FINALITY)
        await one.look()
        assert [bool(effect.data.get("final")) for effect in await one.effects()] == [True]
        assert len(await one.on_the_log()) == 1
