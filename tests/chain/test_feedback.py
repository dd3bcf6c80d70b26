"""What only a real node shows of the log: gas-bound pages, clearing in mid-read, pipelined posting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from web3.types import RPCEndpoint, RPCRequest

from fleet.chain.keys import address_of
from fleet.chain.log import feedback
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.codec import Entry
from fleet.chain.node.provider import NodeProvider
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import PostedEntry
from fleet.config import GasSection
from fleet.devnet import node
from fleet.errors import FleetError, Refused, TxFailed, Unreachable
from tests.chain.conftest import Chain, Kit, make_kit

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]
Node = TypeVar("Node", bound=NodeProvider)


@pytest.fixture
async def clean(kit: Kit) -> AsyncIterator[Kit]:
    snapshot = await kit.rpc.call("evm_snapshot")
    await kit.chain.clear()
    yield kit
    assert await kit.rpc.call("evm_revert", [snapshot])


class NarrowNode(NodeProvider):
    """A node whose calls of one function get little gas, and that notes each page it was asked for."""

    gas = 1_500_000
    pages: list[int]

    def form_request(self, method: RPCEndpoint, params: Any = None) -> RPCRequest:
        if method == "eth_call" and params[0]["data"].startswith("0xcd1f7306"):
            self.pages.append(int(params[0]["data"][74:], 16))
            params = [{**params[0], "gas": hex(self.gas)}, *params[1:]]
        return super().form_request(method, params)


@asynccontextmanager
async def behind(kind: type[Node], url: str) -> AsyncIterator[tuple[Rpc, Node]]:
    """A client whose questions pass through a provider that a test has changed."""
    async with Rpc(url) as rpc:
        provider = kind(url, timeout_s=10, max_bytes=32 << 20)
        rpc.w3.provider = provider
        yield rpc, provider


async def fill(kit: Kit, texts: list[str]) -> None:
    """Entries in one block."""
    await kit.chain.mining(False)
    try:
        sent = await kit.signer.broadcast([kit.log.request(text) for text in texts])
        await kit.chain.mine()
    finally:
        await kit.chain.mining(True)
    assert not [item for item in await kit.signer.collect(sent) if isinstance(item, FleetError)]


async def test_page_shrinks_to_what_the_gas_allows(clean: Kit) -> None:
    texts = [f"{place:03}" + "x" * (1500 if place % 3 else 20) for place in range(60)]
    await fill(clean, texts)
    async with behind(NarrowNode, clean.rpc.url) as (rpc, narrow):
        narrow.pages = []
        log = FeedbackLog(rpc, clean.chain.at.diamond, GasSection())
        read: list[str] = []
        while page := await log.range(len(read), 200):
            read += [entry.text for entry in page]
        assert read == texts
        assert narrow.pages[0] == 200
        assert 1 < min(narrow.pages) < 60


async def test_one_entry_that_no_gas_can_read_is_an_error(clean: Kit) -> None:
    await fill(clean, ["x" * 2000])
    async with behind(NarrowNode, clean.rpc.url) as (rpc, starved):
        starved.pages, starved.gas = [], 60_000
        with pytest.raises(FleetError):
            await FeedbackLog(rpc, clean.chain.at.diamond, GasSection()).range(0, 200)
        assert starved.pages[-1] == 1


async def test_log_cleared_while_posting_still_finds_the_entry(clean: Kit) -> None:
    await fill(clean, ["a", "b", "c"])

    class ClearsFirst(Rpc):
        async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
            if calls and calls[0][0] == "eth_sendRawTransaction":
                await clean.chain.clear()
            return await super().batch(calls)

    async with ClearsFirst(clean.rpc.url) as rpc:
        kit = await make_kit(clean.chain, rpc)
        assert (await kit.log.post("mine")).index == 0


async def test_pipelined_posts_are_all_read_back(clean: Kit) -> None:
    texts = [f"finding {place} " + "x" * 200 for place in range(120)]
    posted = await clean.log.post_many(texts)
    assert [item.index for item in posted if isinstance(item, PostedEntry)] == list(range(120))
    assert [entry.text for entry in await clean.log.range(0, 200)] == texts
    assert sorted(intent["nonce"] for intent in clean.journal.intents.values()) == list(range(120))


async def test_failed_post_is_an_error_in_its_place(chain: Chain) -> None:
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc)
        tight = GasSection(feedback_base=200_000, feedback_per_byte=0)
        log = FeedbackLog(rpc, chain.at.diamond, tight, kit.signer)
        outcomes = await log.post_many(["short", "x" * 900, "short too"])
    assert isinstance(outcomes[0], PostedEntry)
    assert isinstance(outcomes[1], TxFailed)
    assert outcomes[1].kind == "oog"
    assert isinstance(outcomes[2], PostedEntry)


async def test_success_that_is_not_in_the_log_is_no_success(clean: Kit) -> None:
    class Forgetful(NodeProvider):
        """A node whose log never grows, as after a swap of the facet."""

        async def ask(self, method: str, params: Any) -> Any:
            if method == "eth_call" and params[0]["data"] == "0x2ed3f65b":
                return "0x" + "0" * 64
            return await super().ask(method, params)

    async with behind(Forgetful, clean.rpc.url) as (rpc, _):
        kit = await make_kit(clean.chain, rpc)
        with pytest.raises(TxFailed) as caught:
            await kit.log.post("where is it")
    assert caught.value.kind == "read_back"


async def test_a_node_behind_our_own_entry_says_nothing_about_the_log(
    clean: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a balancer one replica lags: to believe it would be to post again."""
    posted = await clean.log.post("once")
    reader = FeedbackLog(clean.rpc, clean.chain.at.diamond, GasSection())
    monkeypatch.setattr("fleet.chain.log.feedback._LAG", {})  # as after its patience
    head = int(str(await clean.rpc.call("eth_blockNumber")), 16)
    reader.seen(head + 1)
    for question in (reader.count(), reader.range(0, 1), reader.find("once", "0x" + "1" * 40)):
        with pytest.raises(Unreachable, match=f"at block {head}, an entry of ours was mined in {head + 1}"):
            await question
    await clean.rpc.call("evm_mine")
    assert [entry.text for entry in await reader.range(posted.index, 1)] == ["once"]


@pytest.mark.parametrize("confirmations", [0, 1])
async def test_a_node_that_stands_still_below_our_entry_is_believed_in_the_end(
    clean: Kit, confirmations: int
) -> None:
    """A node that mines on demand and was set back makes no block until somebody sends something."""
    for _ in range(5):
        await clean.rpc.call("evm_mine")
    log = FeedbackLog(
        clean.rpc,
        clean.chain.at.diamond,
        GasSection(),
        clean.signer,
        confirmations=confirmations,
        step_back_s=0.2,
    )
    await log.count()
    gone = await log.head()
    log.seen(gone)
    await clean.rpc.call("anvil_rollback", [4])
    with pytest.raises(Unreachable, match="at block"):
        await log.count()
    await anyio.sleep(0.3)
    assert await log.count() == await clean.log.count()
    log.seen(gone)  # a run that asks again whether its entry stands: it is known to be gone
    await clean.rpc.call("evm_mine")
    assert await log.head() < gone
    assert await log.count() == await clean.log.count()


async def test_confirmations_hide_fresh_entries(clean: Kit) -> None:
    await fill(clean, ["deep"])
    log = FeedbackLog(clean.rpc, clean.chain.at.diamond, GasSection(), confirmations=1)
    assert await log.count() == 0
    await clean.chain.mine()
    assert await log.count() == 1


async def test_log_without_a_signer_only_reads(clean: Kit) -> None:
    log = FeedbackLog(clean.rpc, clean.chain.at.diamond, GasSection())
    with pytest.raises(Refused):
        await log.post("hello")


async def test_strangers_echo_lends_us_no_index(clean: Kit) -> None:
    """Somebody who has seen our transaction may post the same words just before it is mined."""
    stranger = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"

    class Echoed(Rpc):
        async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
            if calls and calls[0][0] == "eth_sendRawTransaction":
                await node.invoke(clean.rpc, stranger, clean.chain.at.diamond, "submitFeedback", "same words")
            return await super().batch(calls)

    async with Echoed(clean.rpc.url) as rpc:
        kit = await make_kit(clean.chain, rpc)
        assert (await kit.log.post("same words")).index == 1
        assert await kit.log.find("same words", address_of(kit.identity)) == 1


async def test_sweep_leaves_exactly_nothing(clean: Kit, tmp_path: Path) -> None:
    wallet = clean.wallet(tmp_path)
    address = wallet.scope.keys.new("a")  # type: ignore[attr-defined]
    before = int(await clean.rpc.call("eth_getBalance", [address_of(clean.sponsor_key), "latest"]), 16)
    answer = await wallet.submit("a", clean.chain.at.diamond, bytes.fromhex("89934d3a"), 0, 1_200_000)
    assert answer["status"] == 1
    await wallet.sweep()
    assert int(await clean.rpc.call("eth_getBalance", [address, "latest"]), 16) == 0
    after = int(await clean.rpc.call("eth_getBalance", [address_of(clean.sponsor_key), "latest"]), 16)
    price = (before - after) / (answer["gas_used"] + 2 * 21_000)
    assert price < 3 * 10**9


async def test_a_search_in_a_log_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(FeedbackLog):
        asked = 0

        async def range(self, start: int, count: int) -> list[Entry]:
            self.asked += 1
            return [Entry("0x" + "11" * 20, 1, "x")] * count

    monkeypatch.setattr(feedback, "PAGES", 7)
    log = Endless(Rpc("http://127.0.0.1:9"), "0x" + "11" * 20, GasSection())
    with pytest.raises(Unreachable, match="no end within 7 pages"):
        await log.find("y", "0x" + "11" * 20)
    assert log.asked == 7
