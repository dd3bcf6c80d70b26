"""One suite for every log: on chain, in a file, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.log.file_log import FileLog
from fleet.chain.log.reputation_log import ReputationLog
from fleet.chain.node import abi
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import FeedbackPort, Paid, PostedEntry, Role, RunScope, SignerPort
from fleet.chain.signing.judge import SigningLimits
from fleet.chain.signing.signer import Keys, Signer
from fleet.config.erc8004 import Erc8004Section
from fleet.config.platform import NO_CHAIN
from fleet.devnet import artifact, node
from fleet.devnet.deploy import deploy_registries
from fleet.errors import BudgetExceeded, Refused
from tests.chain.conftest import GAS, Chain, Dial, Purse, make_kit
from tests.doubles.chain import MemoryChain
from tests.doubles.chain_memory import MemoryJournal, MemoryKeys
from tests.registry import STRANGER, give

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


@dataclass
class LogSide:
    """One log, and what may happen to it from outside."""

    log: FeedbackPort
    signer: SignerPort
    dial: Dial
    clear: Callable[[], Awaitable[None]]
    foreign: Callable[[str], Awaitable[str]]

    @property
    def mine(self) -> str:
        return self.signer.address(Role.IDENTITY) or ZERO_ADDRESS


async def _memory(tmp: Path, dial: Dial, never: frozenset[bytes]) -> LogSide:
    memory = MemoryChain(SigningLimits(rung=dial, never=never))

    async def clear() -> None:
        memory.clear_feedback()

    async def foreign(text: str) -> str:
        memory.foreign_entry(STRANGER, text)
        return STRANGER

    return LogSide(memory.log, memory.signer, dial, clear, foreign)


async def _file(tmp: Path, dial: Dial, never: frozenset[bytes]) -> LogSide:
    path = tmp / "logs" / "own.jsonl"
    memory = MemoryChain(SigningLimits(rung=dial, never=never))
    other = MemoryChain(SigningLimits(rung=Dial()))

    async def clear() -> None:
        path.unlink(missing_ok=True)

    async def foreign(text: str) -> str:
        await FileLog(path, other.signer).post(text)
        return other.signer.address(Role.IDENTITY)

    return LogSide(FileLog(path, memory.signer), memory.signer, dial, clear, foreign)


async def _local(tmp: Path, dial: Dial, never: frozenset[bytes]) -> LogSide:
    """A file of a platform without a chain: no key, no node."""
    signer = Signer(
        Rpc(""), NO_CHAIN, MemoryJournal(), keys=Keys(), fences=SigningLimits(rung=dial, never=never)
    )
    file = await _file(tmp, dial, never)
    return replace(file, log=FileLog(tmp / "logs" / "own.jsonl", signer), signer=signer)


@pytest.fixture
def never() -> frozenset[bytes]:
    return frozenset()


ON_CHAIN = ["anvil", "contract", "erc8004"]
CLEARED = ["memory", "file", "local", "anvil"]
"""Logs that someone can clear. Neither a contract without an owner nor a registry is one."""


@pytest.fixture(params=[*CLEARED, *ON_CHAIN[1:]])
async def side(
    request: pytest.FixtureRequest, tmp_path: Path, never: frozenset[bytes], chain: Chain
) -> AsyncIterator[LogSide]:
    dial = Dial()
    if request.param not in ON_CHAIN:
        yield await {"memory": _memory, "file": _file, "local": _local}[request.param](tmp_path, dial, never)
        return
    snapshot = await chain.rpc.call("evm_snapshot")
    await chain.clear()
    async with Rpc(chain.rpc.url) as rpc:
        on_chain: dict[str, Callable[..., Awaitable[LogSide]]] = {"anvil": _diamond, "contract": _contract}
        on_chain["erc8004"] = partial(_registry, kept=tmp_path / "kept")
        yield await on_chain[request.param](chain, rpc, never)
    assert await chain.rpc.call("evm_revert", [snapshot])


async def _diamond(chain: Chain, rpc: Rpc, never: frozenset[bytes]) -> LogSide:
    return await _submitting(chain, rpc, never, chain.at.diamond)


async def _contract(chain: Chain, rpc: Rpc, never: frozenset[bytes]) -> LogSide:
    """Another contract with a feedback log; the profile names no diamond."""
    alone = await node.create(chain.rpc, chain.at.deployer, artifact.load("FeedbackFacet").code)
    return await _submitting(chain, rpc, never, alone, diamond="")


async def _submitting(
    chain: Chain, rpc: Rpc, never: frozenset[bytes], contract: str, **section: Any
) -> LogSide:
    kit = await make_kit(chain, rpc, never=never, log=contract, **section)

    async def foreign(text: str) -> str:
        await node.invoke(chain.rpc, STRANGER, contract, "submitFeedback", text)
        return STRANGER

    log = FeedbackLog(rpc, contract, GAS, kit.signer)
    return LogSide(log, kit.signer, kit.dial, chain.clear, foreign)


async def _registry(chain: Chain, rpc: Rpc, never: frozenset[bytes], *, kept: Path) -> LogSide:
    """A Reputation registry whose readers trust the fleet and one other client."""
    at = await deploy_registries(chain.rpc)
    kit = await make_kit(chain, rpc, never=never, log=at.reputation, agent=at.agent, diamond="")
    agent = Erc8004Section(
        identity=at.identity, agent=at.agent, clients=(kit.signer.address(Role.IDENTITY), STRANGER)
    )

    async def foreign(text: str) -> str:
        await give(chain.rpc, at, STRANGER, text)
        return STRANGER

    log = ReputationLog(rpc, at.reputation, agent, chain.section(diamond=""), GAS, kit.signer, kept=kept)
    return LogSide(log, kit.signer, kit.dial, chain.clear, foreign)


def scope(purse: Purse | None) -> RunScope:
    return RunScope(run="ab12", prefix="qa-ab12-", keys=MemoryKeys(), payer=purse)


async def test_an_empty_log_holds_nothing(side: LogSide) -> None:
    assert await side.log.count() == 0
    assert await side.log.range(0, 10) == []
    assert await side.log.find("x", side.mine) is None


async def test_a_post_is_read_back_at_its_index(side: LogSide) -> None:
    stranger = await side.foreign("a stranger's")
    hostile = 'two — ü\n\x00\x1b[31m\u2028{"n":9}\\'
    posted = [await side.log.post(text) for text in ("one", hostile, "one")]
    assert [item.index for item in posted] == [1, 2, 3]
    entries = await side.log.range(0, 10)
    assert [entry.text for entry in entries] == ["a stranger's", "one", hostile, "one"]
    assert [entry.sender for entry in entries] == [stranger, side.mine, side.mine, side.mine]
    times = [entry.timestamp for entry in entries]
    assert times == sorted(times)
    assert times[0] > 0


async def test_post_many_gives_each_its_own_index(side: LogSide) -> None:
    posted = await side.log.post_many(["a", "b", "a", "c"])
    assert [getattr(item, "index", item) for item in posted] == [0, 1, 2, 3]
    assert len({item.tx for item in posted if isinstance(item, PostedEntry)}) == 4


async def test_a_range_ends_with_the_log(side: LogSide) -> None:
    await side.log.post_many([str(n) for n in range(7)])
    read = [[entry.text for entry in await side.log.range(at, 3)] for at in (0, 3, 6, 7, 99)]
    assert read == [["0", "1", "2"], ["3", "4", "5"], ["6"], [], []]


async def test_find_is_exact_in_text_and_sender_and_returns_the_newest(side: LogSide) -> None:
    stranger = await side.foreign("claim")
    await side.log.post_many(["claim", "claim", "claim!"])
    assert await side.log.find("claim", side.mine) == 2
    assert await side.log.find("claim", stranger) == 0
    assert await side.log.find("claim", side.mine, since=3) is None
    assert await side.log.find("clai", side.mine) is None


@pytest.mark.parametrize("side", CLEARED, indirect=True)
async def test_a_clear_restarts_the_indices(side: LogSide) -> None:
    await side.log.post_many(["old 1", "old 2"])
    await side.clear()
    assert await side.log.count() == 0
    assert await side.log.range(0, 10) == []
    assert (await side.log.post("new")).index == 0
    assert [entry.text for entry in await side.log.range(0, 10)] == ["new"]


@pytest.mark.parametrize("text", ["", "x" * 2049, "é" * 1025, "\ud800"])
async def test_what_no_log_takes_is_never_written(side: LogSide, text: str) -> None:
    for act in (side.log.post(text), side.log.post_many(["fine", text])):
        with pytest.raises(Refused) as caught:
            await act
        assert caught.value.rule == "text"
    assert await side.log.count() == 0


@pytest.mark.parametrize("text", ["é" * 1024, "\x01" * 2048])
async def test_the_longest_text_fits(side: LogSide, text: str) -> None:
    assert (await side.log.post(text)).index == 0
    assert [entry.text for entry in await side.log.range(0, 1)] == [text]


async def test_stop_refuses_every_post(side: LogSide) -> None:
    side.dial.word = "stop"
    with pytest.raises(Refused) as caught:
        await side.log.post("x")
    assert caught.value.rule == "stop"
    assert await side.log.count() == 0


async def test_the_lowest_rung_may_post(side: LogSide) -> None:
    side.dial.word = "observe"
    assert (await side.log.post("x")).index == 0


@pytest.mark.parametrize("never", [frozenset({abi.FUNCTIONS["submitFeedback"].selector})])
async def test_the_never_list_refuses_every_post(side: LogSide) -> None:
    with pytest.raises(Refused) as caught:
        await side.log.post("x")
    assert caught.value.rule == "never"
    assert await side.log.count() == 0


async def test_a_run_pays_for_its_entries(side: LogSide) -> None:
    purse = Purse(left=2)
    side.signer.open_run(scope(purse))
    await side.log.post("one", run="ab12")
    await side.log.post("two", run="ab12", charge="closing")
    assert purse.spent == ["reports", "closing"]
    with pytest.raises(BudgetExceeded):
        await side.log.post("three", run="ab12")
    with pytest.raises(Refused) as caught:
        await side.log.post("as a write", run="ab12", charge="writes")
    assert caught.value.rule == "charge"
    assert await side.log.count() == 2


async def test_stop_between_the_charge_and_the_entry_refuses_it(side: LogSide) -> None:
    """A run's budget is a trip to the journal: the dial may turn meanwhile."""

    class Turns(Purse):
        async def spend(self, unit: Paid, /) -> int:
            side.dial.word = "stop"
            return await super().spend(unit)

    purse = Turns()
    side.signer.open_run(scope(purse))
    with pytest.raises(Refused) as caught:
        await side.log.post("x", run="ab12")
    assert (caught.value.rule, purse.spent) == ("stop", ["reports"])
    side.dial.word = "exercise"
    assert await side.log.count() == 0


async def test_a_run_that_is_not_open_cannot_pay(side: LogSide) -> None:
    with pytest.raises(Refused) as caught:
        await side.log.post("x", run="zz99")
    assert caught.value.rule == "charge"
    assert await side.log.count() == 0
