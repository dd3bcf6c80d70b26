"""The mirror of a real chain: `anvil_reorg`, `clearFeedback`, and a node that gives calls little gas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from web3.types import RPCEndpoint, RPCRequest

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.provider import NodeProvider
from fleet.chain.node.rpc import Rpc
from fleet.config import GasSection, Platform
from fleet.errors import Unreachable
from fleet.store.journal import MEMORY, Journal
from fleet.triage.log.check import compare
from fleet.triage.log.mirror import MirrorState, follow
from tests.chain.conftest import Chain, Kit
from tests.devnet.seed import seed_feedback

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    async with await Journal.open(MEMORY) as opened:
        yield opened


@pytest.fixture
async def clean(kit: Kit) -> AsyncIterator[Kit]:
    snapshot = await kit.rpc.call("evm_snapshot")
    await kit.chain.clear()
    yield kit
    await kit.rpc.call("evm_revert", [snapshot])


async def texts(journal: Journal, epoch: int) -> list[str]:
    return [entry.text for entry in await journal.mirror_since(epoch, 0)]


async def test_a_reorganised_chain_is_told_from_a_cleared_log(clean: Kit, journal: Journal) -> None:
    log, name = clean.log, Platform(name="here", chain=clean.chain.section()).log_name
    for n in range(5):
        await log.post(f"entry {n}")
    assert (await follow(log, journal, name=name)).new == 5
    await clean.rpc.call("anvil_reorg", [2, []])  # the blocks of the last two entries, now empty
    assert await log.count() == 3
    await log.post("of the new chain")
    done = await follow(log, journal, name=name)
    assert (done.epoch, done.next_index, done.resets, done.rewinds) == (0, 4, 0, 1)
    await log.post("and one more")
    assert await follow(log, journal, name=name) == MirrorState(0, 5, 1, 0)
    assert await texts(journal, 0) == ["entry 0", "entry 1", "entry 2", "of the new chain", "and one more"]
    assert (await compare(log, journal, 0, 5)).differs is None
    await clean.chain.clear()
    await log.post("after the clear")
    assert await follow(log, journal, name=name) == MirrorState(1, 1, 1, 1)
    assert len(await texts(journal, 0)) == 5
    assert await texts(journal, 1) == ["after the clear"]


class PoorNode(NodeProvider):
    """Gives each call 30 million gas, and refuses answers of more than `most` bytes."""

    asked = 0

    def form_request(self, method: RPCEndpoint, params: Any = None) -> RPCRequest:
        if method == "eth_call":
            self.asked += 1
            params = [{**params[0], "gas": hex(30_000_000)}, *params[1:]]
        return super().form_request(method, params)


@pytest.mark.parametrize("most", [32 << 20, 100_000])
async def test_the_longest_entries_fit_whatever_the_node_gives(
    clean: Kit, journal: Journal, most: int
) -> None:
    await seed_feedback(clean.rpc, clean.chain.at.diamond, 300, 2048)
    async with Rpc(clean.rpc.url) as rpc:
        rpc.w3.provider = poor = PoorNode(rpc.url, timeout_s=10, max_bytes=most)
        log = FeedbackLog(rpc, clean.chain.at.diamond, GasSection())
        assert (await follow(log, journal, name="capped")).new == 300
    assert poor.asked < 300 / (10 if most > 100_000 else 2)
    assert [len(text) for text in await texts(journal, 0)] == [2048] * 300


async def test_an_answer_that_is_too_large_even_for_one_entry_is_an_error(
    clean: Kit, journal: Journal
) -> None:
    await clean.log.post_many(["short", "x" * 2048])
    async with Rpc(clean.rpc.url) as rpc:
        rpc.w3.provider = NodeProvider(rpc.url, timeout_s=10, max_bytes=3_000)
        log = FeedbackLog(rpc, clean.chain.at.diamond, GasSection())
        with pytest.raises(Unreachable, match="an answer larger than 3000 bytes"):
            await follow(log, journal, name="capped")


async def test_another_chain_is_another_log(chain: Chain) -> None:
    here, there = (Platform(name="one", chain=section) for section in (chain.section(), chain.section(id=99)))
    assert here.log_name == f"{chain.at.chain_id}:{chain.at.diamond.lower()}"
    assert there.log_name != here.log_name
    assert here.model_copy(update={"log": "file:own"}).log_name == "file:own"
    assert here.model_copy(update={"log": "file"}).log_name == "file:one"
