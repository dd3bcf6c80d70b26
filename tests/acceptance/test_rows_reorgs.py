"""What a reorganisation took from the log is there again once, whoever looks first: run, sweep or triage."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fleet.app.persona_sets import roster
from fleet.app.status import missing_entries
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.ports import Role
from fleet.chain.signing.tx import parse
from fleet.findings.reader import read
from fleet.gate.stop import stop
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.run import fire
from fleet.runs.settlement.finality import PostingSide, look_at_posts
from fleet.runs.settlement.reorg import clear_again, delegated, release_again, undone
from fleet.store.rows import MISSING, EffectRow
from fleet.triage.triage_pass import pass_over
from tests.acceptance.conftest import CREATE, House, persona, probe, step

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
FINALITY = 64
POOL_S = 5
"""Longer than a run needs to its first post."""


@dataclass
class Chain:
    """One world on a chain that a test takes blocks from."""

    house: House
    world: FleetContext
    one: LoadedPersona
    told: list[str] = field(default_factory=list)

    async def head(self) -> int:
        return int(await self.house.rpc.call("eth_blockNumber", []), 16)

    async def report(self) -> list[str]:
        return [row.state for row in (await fire(self.world, self.one)).findings]

    async def posts(self) -> list[EffectRow]:
        effects = await self.world.journal.effects(None, ["tx"])
        return [one for one in effects if one.data["purpose"] == "post"]

    async def undo(self, count: int, *, then: int = 0) -> None:
        """The chain steps back to before the last `count` posts, and mines `then` empty blocks."""
        first = (await self.posts())[-count].data["block"]
        await self.house.rpc.call("anvil_rollback", [await self.head() - first + 1])
        await self.mine(then)

    async def mine(self, blocks: int) -> None:
        for _ in range(blocks):
            await self.house.rpc.call("evm_mine")

    async def look(self) -> None:
        await look_at_posts(PostingSide.of(self.world), lambda run, why: self.told.append(why))

    async def ours(self) -> Counter[str]:
        """How often each finding, and triage's summary, is on the log under the fleet's name."""
        entries = await self.world.chain.log.range(0, 10_000)
        mine = [read(one.text) for one in entries if one.sender == self.world.chain.identity]
        return Counter(f"{one.source}:{one.fp or one.title}" for one in mine)

    async def missing(self) -> str | None:
        return await self.world.journal.get(f"{MISSING}devnet")

    async def pool(self, on: bool) -> None:
        """A block every few seconds from a pool, as on a real chain, or one for each transaction."""
        if on:
            await self.house.rpc.call("evm_setIntervalMining", [POOL_S])
        else:
            await self.house.rpc.call("evm_setIntervalMining", [0])
            await self.house.rpc.call("evm_setAutomine", [True])


def seen(name: str, path: str) -> str:
    return probe(name, step("qa_fetch", url=f"{{site}}{path}"), expect="result.status == 418")


@asynccontextmanager
async def opened(house: House, root: Path, *probes: str) -> AsyncIterator[Chain]:
    one = persona(
        root,
        'tools = ["qa_fetch"]\nbudget = { calls = 60, reports = 5 }',
        *(probes or (seen("a", "/llms.txt"),)),
    )
    state = await house.state(root, ("[chain]\n", f"[chain]\nfinality_blocks = {FINALITY}\n"))
    async with house.world(state, one) as world:
        chain = world.platform.chain
        log = FeedbackLog(
            house.rpc,
            chain.diamond,
            world.platform.gas,
            world.chain.signer,
            confirmations=chain.confirmations,
            step_back_s=0.0,
        )
        yield Chain(house, replace(world, chain=replace(world.chain, log=log)), one)


async def test_a_second_run_brings_back_the_entry_of_the_first(house: House, tmp_path: Path) -> None:
    async with opened(house, tmp_path) as chain:
        assert await chain.report() == ["posted"]
        for _ in range(2):  # two reorganisations, each followed by a run that finds the same
            await chain.undo(1, then=2)
            assert await chain.ours() == {}
            assert await chain.report() == ["repeated"]
            assert list((await chain.ours()).values()) == [1]
        await chain.look()
        assert list((await chain.ours()).values()) == [1]
        assert len(await chain.posts()) == 1


@pytest.mark.parametrize("taken", [False, True])
async def test_a_name_that_comes_back_to_a_sponsored_key_is_released_without_it(
    house: House, tmp_path: Path, taken: bool
) -> None:
    """The key is destroyed by then: the bytes are sent again, or the sponsor makes the call anew, and takes
    the delegate away with the word that is in the bytes."""
    budget = 'tools = ["qa_create"]\nbudget = { calls = 60, writes = 5 }'
    one = persona(tmp_path, budget, probe("mint", CREATE, expect="result.ok"))
    state = await house.state(tmp_path)
    profile = state / "devnet" / "devnet.toml"
    profile.write_text(f'{profile.read_text()}\n[sponsor]\nmode = "sponsored"\n')
    async with house.world(state, one) as world:
        report = await fire(world, one)
        (name,) = await world.journal.effects(report.run, ["name"])
        sent = {tx.data["purpose"]: tx.data for tx in await world.journal.effects(report.run, ["tx"])}
        assert [word.partition(" ")[0] for word in sent] == ["deploy", "tool", "release", "clear"]
        key, payer = name.data["owner"], world.chain.signer.address(Role.SPONSOR)
        head = int(await house.rpc.call("eth_blockNumber", []), 16)
        await house.rpc.call("anvil_reorg", [head - sent[f"release {name.ref}"]["block"] + 1, []])
        assert [found.ref for found in await undone(world)] == [name.ref]
        assert await house.rpc.call("eth_getCode", [key, "latest"]) != "0x"
        if taken:  # by transactions of other runs
            await house.rpc.call("anvil_setNonce", [payer, "0x9"])
        told: list[str] = []
        await release_again(world, name, lambda: told.append(name.ref))
        assert (await undone(world), told) == ([], [name.ref])
        again = await delegated(world)
        assert [one.data["to"] for one in again] == ([key] if taken else [])
        for clear in again:
            await clear_again(world, clear)
        assert await house.rpc.call("eth_getCode", [key, "latest"]) == "0x"
        assert await delegated(world) == []


async def test_two_runs_that_posted_the_same_are_both_undone(house: House, tmp_path: Path) -> None:
    """The nonce of the first entry was used, so the second run has posted its own; then both are gone."""
    async with opened(house, tmp_path) as chain:
        assert await chain.report() == ["posted"]
        await chain.undo(1)
        await chain.world.chain.log.post("something else", charge="none")
        await chain.mine(2)
        assert await chain.report() in (["posted"], ["repeated"])
        assert len(await chain.posts()) == 3
        await chain.undo(2, then=2)
        for _ in range(3):
            await chain.mine(FINALITY)
            await chain.look()
        assert [count for name, count in (await chain.ours()).items() if name.startswith("qa-row")] == [1]


async def test_an_entry_that_waits_in_the_pool_again_is_not_posted_beside_it(
    house: House, tmp_path: Path
) -> None:
    """Nodes put what a reorganisation dropped back into their pool: one is enough."""
    async with opened(house, tmp_path) as chain:
        assert await chain.report() == ["posted"]
        (post,) = await chain.posts()
        await chain.undo(1)
        await chain.pool(on=True)
        try:
            await house.rpc.call("eth_sendRawTransaction", ["0x" + post.data["raw"]])
            assert await chain.report() == ["repeated"]
        finally:
            await chain.pool(on=False)
        await chain.mine(2)
        assert list((await chain.ours()).values()) == [1]


async def test_triages_own_entry_is_not_sent_again_and_written_anew(house: House, tmp_path: Path) -> None:
    async with opened(house, tmp_path) as chain:
        triage = roster()[0]["qa-triage"]
        assert await chain.report() == ["posted"]
        await pass_over(chain.world, triage)
        before = await chain.ours()
        assert sorted(before.values()) == [1, 1]
        for _ in range(2):
            await chain.undo(2, then=2)
            assert await chain.ours() == {}
            await pass_over(chain.world, triage)
            await chain.look()
            assert await chain.ours() == before


async def test_a_step_back_is_repaired_in_order_of_nonce_and_said(house: House, tmp_path: Path) -> None:
    """The chain has grown past the first block again, and not past the others."""
    probes = [seen(name, path) for name, path in (("a", "/llms.txt"), ("b", "/"), ("c", "/robots.txt"))]
    async with opened(house, tmp_path, *probes) as chain:
        assert await chain.report() == ["posted"] * 3
        before, blocks = await chain.ours(), [one.data["block"] for one in await chain.posts()]
        await chain.mine(2)
        await chain.undo(3, then=1)
        assert await chain.ours() == {}
        await chain.look()
        assert await chain.ours() == before
        posts = await chain.posts()
        assert [one.state for one in posts] == ["done"] * 3
        assert [parse(bytes.fromhex(one.data["raw"]))[0].nonce for one in posts] == [0, 1, 2]
        places = [row.index for row in await chain.world.journal.findings(states=["posted"])]
        # the node may put several into one block: one that is in a block of its old number is where it was
        moved = [n for n, old, one in zip(places, blocks, posts, strict=True) if one.data["block"] != old]
        assert moved[:1] == places[:1]
        again = [f"entry {n} was dropped by the chain, and is there again as {n}" for n in moved]
        assert chain.told == again
        await chain.look()
        assert chain.told == again
        assert await chain.missing() == ""


async def test_under_stop_none_is_sent_again(house: House, tmp_path: Path) -> None:
    async with opened(house, tmp_path, seen("a", "/llms.txt"), seen("b", "/")) as chain:
        assert await chain.report() == ["posted"] * 2
        await chain.undo(2, then=2)
        stop(chain.world.state, "a test", "test", chain.world.clock)
        await chain.look()
        assert await chain.ours() == {}
        assert chain.told == ["2 posted entries are no longer on the chain, and are not sent again now"]
        await chain.look()
        assert len(chain.told) == 1  # it is said once
        (wrong,) = await missing_entries(chain.world.journal)
        assert (wrong["platform"], wrong["count"]) == ("devnet", 2)
