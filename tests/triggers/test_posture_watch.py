"""What the watch of contracts sees on a real chain, what it judges, and where it says that it cannot see."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.config.platform import ChainSection, Platform
from fleet.config.watch import InvariantSection, WatchSection
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import deploy
from fleet.devnet.surfaces.posture import encoded, owned_by, slot, view
from fleet.errors import ConfigError, RpcError, Unreachable
from fleet.triggers.chain import posture_watch
from fleet.triggers.chain.invariants import invariants_of
from fleet.triggers.chain.posture import PostureState
from fleet.triggers.chain.posture_watch import PostureWatch
from fleet.triggers.chain.telling import EXPECTED, KEY, TOLD, expected
from tests.doubles.triggers import FiringRecorder
from tests.triggers.watched import NAME, MortalFacts, WatchedChain, watched

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

ANN, BEN = "0x" + "a1" * 20, "0x" + "b2" * 20
CODE, NEXT = "0x" + "c1" * 20, "0x" + "c2" * 20
REMOVE = 2
OWNED = "SELF owner()(address)"


def owned_view(contract: str) -> dict[str, str]:
    """The call of its view `owner()`."""
    return {"to": contract, "data": "0x8da5cb5b"}


@pytest.fixture(scope="module")
async def rpc(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rpc]:
    state = tmp_path_factory.mktemp("chain") / "chain.json"
    async with Anvil(state, history=256) as anvil, Rpc(anvil.url) as found:
        yield found


@pytest.fixture
async def sender(rpc: Rpc) -> str:
    return str((await rpc.call("eth_accounts"))[0])


Make = Callable[..., Any]


@pytest.fixture
async def make(rpc: Rpc, sender: str) -> Make:
    """A watched contract with these slots, past the first look; more keys of `[watch]` by name."""

    async def made(slots: dict[bytes, bytes], **section: Any) -> tuple[str, WatchedChain]:
        contract = await watched(rpc, sender)
        named = {
            name: InvariantSection(
                views={key: text.replace("SELF", contract) for key, text in views.items()}, holds=holds
            )
            for name, (views, holds) in section.pop("invariants", {}).items()
        }
        at = WatchedChain(rpc, sender, WatchSection(contracts=(contract,), invariants=named, **section))
        await at.write(contract, slots)
        assert await at.look() == []
        return contract, at

    return made


class Erring:
    """A node that answers some calls with an error of its own."""

    def __init__(self, rpc: Rpc, errs: Callable[[str, list[Any]], bool], why: str) -> None:
        self.rpc, self.call, self.errs, self.why = rpc, rpc.call, errs, why

    async def batch(self, calls: list[tuple[str, list[Any]]]) -> list[Any]:
        said = RpcError(self.why, code=-32000)
        answers = await self.rpc.batch(calls)
        return [said if self.errs(*one) else found for one, found in zip(calls, answers, strict=True)]


def told(texts: list[str]) -> list[str]:
    """Without platform and block."""
    return [text.split(": ", 1)[1] for text in texts]


async def test_what_is_there_at_first_is_not_a_change_and_a_quiet_block_tells_nothing(make: Make) -> None:
    contract, at = await make(owned_by(ANN) | slot("implementation", CODE))
    parts = (await at.state())["parts"]
    assert parts[f"{contract} owner"] == ANN
    assert parts[f"{contract} implementation"] == CODE
    assert parts[f"{ANN} code"] == "none"
    await at.rpc.call("evm_mine")
    assert await at.look() == []
    assert at.sink.keys == []


async def test_an_account_that_begins_to_delegate_is_told(make: Make) -> None:
    """EIP-7702 says nothing on the contract: only the code of its owner changes."""
    _, at = await make(owned_by(ANN))
    await at.rpc.call("evm_mine")
    await at.rpc.call("anvil_setCode", [ANN, "0xef0100" + BEN[2:]])
    await at.rpc.call("evm_mine")
    assert told(await at.look()) == [f"silent: {ANN} code: none → delegates to {BEN}"]
    assert [key.partition("@")[2].partition(":")[0] for key in at.sink.keys] == [
        "posture-changed",
        "code-changed",
    ]
    await at.rpc.call("anvil_setCode", [ANN, "0x"])
    await at.rpc.call("evm_mine")
    assert told(await at.look()) == [f"silent: {ANN} code: delegates to {BEN} → none"]


async def test_who_owns_the_owner_is_watched_too(make: Make, rpc: Rpc, sender: str) -> None:
    contract, at = await make(owned_by(ANN))
    safe = await watched(rpc, sender)
    await at.write(
        safe, view("getOwners()", ["address[]"], [ANN, BEN]) | view("getThreshold()", ["uint256"], 2)
    )
    await at.write(contract, owned_by(safe))
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {safe}"]
    await at.write(safe, view("getOwners()", ["address[]"], [BEN]), ["RemovedOwner(address)"])
    await at.write(safe, view("getThreshold()", ["uint256"], 1))
    assert told(await at.look()) == [
        f"announced by its event RemovedOwner: {safe} safe-owners: {ANN},{BEN} → {BEN}",
        f"silent: {safe} threshold: 2 → 1",
    ]


async def test_an_owner_at_a_precompiles_address_has_no_views(make: Make) -> None:
    """Some answer every call with bytes, such as a hash; others with an error that anvil calls its own."""
    contract, at = await make(owned_by(ANN))
    for number, before in ((3, ANN), (9, f"0x{3:040x}")):
        owner = f"0x{number:040x}"
        await at.write(contract, owned_by(owner))
        assert told(await at.look()) == [f"silent: {contract} owner: {before} → {owner}"]
        state = await at.state()
        assert [part for part in state["parts"] if part.startswith(owner)] == [f"{owner} code"]
        assert state["asked"] == {contract: ["implementation", "owner"], owner: ["code"]}
    assert at.sink.skips == []


async def test_a_view_that_the_node_cannot_read_is_said_once_and_counts_as_before(make: Make) -> None:
    contract, at = await make(
        owned_by(ANN) | view("paused()", ["bool"], False), invariants={"named": ({"who": OWNED}, "who != ''")}
    )
    owner = owned_view(contract)
    at.watch.reader._node = Erring(at.rpc, lambda _, params: owner in params, "no such luck")
    await at.write(contract, owned_by(BEN))
    await at.write(contract, view("paused()", ["bool"], True))
    assert told(await at.look()) == [f"silent: {contract} paused: false → true"]
    assert [one.reason for one in at.sink.skips] == [
        f"{contract} owner is not readable, and counts as unchanged: no such luck",
        "invariant named is not judged: a view does not answer: no such luck",
    ]
    at.watch.reader._node = at.rpc
    await at.rpc.call("evm_mine")
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {BEN}"]


async def test_a_view_that_was_never_readable_is_told_as_such(make: Make, rpc: Rpc, sender: str) -> None:
    safe = await watched(rpc, sender)
    await node.transact(rpc, sender, safe, encoded(owned_by(BEN)))
    contract, at = await make(owned_by(ANN))
    owner = owned_view(safe)
    at.watch.reader._node = Erring(rpc, lambda _, params: owner in params, "no such luck")
    await at.write(contract, owned_by(safe))
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {safe}"]
    assert (await at.state())["parts"][f"{safe} owner"] == "unreadable"
    at.watch.reader._node = rpc
    await rpc.call("evm_mine")
    assert told(await at.look()) == [f"silent: {safe} owner: unreadable → {BEN}"]


async def test_a_beacon_changes_what_stands_behind_every_proxy(make: Make, rpc: Rpc, sender: str) -> None:
    beacon = await watched(rpc, sender)
    call = encoded(view("implementation()", ["address"], CODE))
    await node.transact(rpc, sender, beacon, call)
    _, at = await make(slot("beacon", beacon))
    await at.write(beacon, view("implementation()", ["address"], NEXT), ["Upgraded(address)", NEXT])
    assert told(await at.look()) == [
        f"announced by its event Upgraded: {beacon} beacon-implementation: {CODE} → {NEXT}"
    ]


async def test_a_cut_of_a_real_diamond_names_each_selector(rpc: Rpc) -> None:
    at = await deploy(rpc)
    profile = Platform(name=NAME, chain=ChainSection(rpc=rpc.url, id=31337, diamond=at.diamond))
    facts, sink = MortalFacts(), FiringRecorder()
    watch = PostureWatch(profile, rpc, facts, sink, lambda _: ("qa-watch",))
    await watch.look()
    selector = FUNCTIONS["creditOf"].selector
    facet = await rpc.view(at.diamond, "facetAddress", selector)
    await node.invoke(
        rpc, at.deployer, at.diamond, "diamondCut", [(ZERO_ADDRESS, REMOVE, [selector])], ZERO_ADDRESS, b""
    )
    await watch.look()
    changes = [one for key, one in facts.items() if key.startswith(TOLD)]
    (change,) = json.loads(changes[0])["changes"]
    assert len(changes) == 1
    assert change == {
        "part": f"{at.diamond.lower()} selector 0x{selector.hex()}",
        "before": facet,
        "after": "",
        "judged": "announced",
        "by": "its event DiamondCut",
    }


SOLVENT = {
    "solvent": (
        {"assets": "SELF assets()(uint256)", "debts": "SELF debts()(uint256)"},
        "assets - 1 >= debts * 2",
    )
}
HUGE = 10**40


def debts(number: int) -> dict[bytes, bytes]:
    return view("debts()", ["uint256"], number)


async def test_an_invariant_is_broken_when_it_was_false_at_three_blocks_in_a_row(make: Make) -> None:
    contract, at = await make(view("assets()", ["uint256"], HUGE) | debts(1), invariants=SOLVENT)
    for number in (HUGE, HUGE):
        await at.write(contract, debts(number))
    await at.write(contract, debts(2))  # false at two blocks only
    await at.write(contract, debts(HUGE))
    await at.rpc.call("evm_mine")
    assert await at.look() == []
    await at.rpc.call("evm_mine")
    assert told(await at.look()) == ["broken: invariant solvent: holds → broken"]
    assert at.notices.waiting[-1].critical
    await at.rpc.call("evm_mine")
    assert await at.look() == []
    await at.write(contract, debts(3))
    assert told(await at.look()) == ["restored: invariant solvent: broken → holds"]


async def test_an_invariant_that_cannot_be_decided_is_neither_broken_nor_restored(make: Make) -> None:
    contract, at = await make(view("assets()", ["uint256"], HUGE) | debts(1), invariants=SOLVENT)
    key = next(iter(debts(1)))
    await at.write(contract, {key: bytes(32)})  # the view reverts from here on
    for _ in range(4):
        await at.rpc.call("evm_mine")
    assert await at.look() == []
    (skip,) = at.sink.skips
    assert skip.reason.startswith("invariant solvent is not judged: a view does not answer")


@pytest.mark.parametrize("depth", [1, 4])
async def test_what_a_reorganisation_takes_back_is_told_as_such(make: Make, depth: int) -> None:
    contract, at = await make(owned_by(ANN))
    for _ in range(depth - 1):
        await at.rpc.call("evm_mine")
    await at.write(contract, owned_by(BEN))
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {BEN}"]
    await at.rpc.call("anvil_reorg", [depth, []])
    assert told(await at.look()) == [
        f"taken back by a reorganisation: silent: {contract} owner: {ANN} → {BEN}"
    ]
    assert await at.look() == []
    await at.write(contract, owned_by(BEN))
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {BEN}"]


async def test_a_reorganisation_deeper_than_the_trail_is_compared_as_a_whole(make: Make) -> None:
    contract, at = await make(owned_by(ANN))
    await at.write(contract, owned_by(BEN))
    assert len(await at.look()) == 1
    state = PostureState.loads(at.facts[KEY + NAME])
    lost = tuple(replace(one, hash="0x" + "00" * 32) for one in state.trail)
    at.facts[KEY + NAME] = replace(state, trail=lost).dumps()
    await at.write(contract, owned_by(ANN))
    assert told(await at.look()) == [f"silent: {contract} owner: {BEN} → {ANN}"]
    (skip,) = at.sink.skips
    assert "the chain was reorganised by more than" in skip.reason


async def test_after_a_long_absence_only_what_differs_is_told(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract, at = await make(owned_by(ANN))
    monkeypatch.setattr(posture_watch, "FAR", 3)
    await at.write(contract, slot("implementation", CODE))
    await at.write(contract, owned_by(BEN))
    await at.write(contract, slot("implementation", ZERO_ADDRESS))
    for _ in range(3):
        await at.rpc.call("evm_mine")
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {BEN}"]
    (skip,) = at.sink.skips
    assert "passed unseen: only what differs at block" in skip.reason


async def test_a_node_without_old_states_is_compared_at_the_newest(make: Make) -> None:
    contract, at = await make(owned_by(ANN))
    await at.write(contract, owned_by(BEN))
    for _ in range(70):
        await at.rpc.call("evm_mine")
    oldest = await at.rpc.head() - 8

    def gone(method: str, params: list[Any]) -> bool:
        reads = method in ("eth_call", "eth_getStorageAt", "eth_getCode")
        return reads and int(params[-1], 16) < oldest

    at.watch.reader._node = Erring(at.rpc, gone, "missing trie node")
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {BEN}"]
    (skip,) = at.sink.skips
    assert "cannot be read any more: missing trie node" in skip.reason


async def test_a_node_that_lags_is_waited_for(make: Make) -> None:
    _, at = await make(owned_by(ANN))
    state = PostureState.loads(at.facts[KEY + NAME])
    ahead = replace(state.trail[-1], number=state.number + 5)
    at.facts[KEY + NAME] = replace(state, trail=(*state.trail, ahead)).dumps()
    with pytest.raises(Unreachable, match="but has been at"):
        await at.watch.look()


async def test_of_two_daemons_one_tells(make: Make) -> None:
    contract, at = await make(owned_by(ANN))
    other = PostureWatch(
        Platform(name=NAME, chain=ChainSection(rpc=at.rpc.url, id=31337), watch=at.section, log="file"),
        at.rpc,
        at.facts,
        at.sink,
        lambda _: ("qa-watch",),
    )
    await at.write(contract, owned_by(BEN))
    read = at.watch.reader.read

    async def slow(*args: Any) -> Any:
        await other.look()
        return await read(*args)

    at.watch.reader.read = slow
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {BEN}"]
    assert len(at.sink.keys) == len(set(at.sink.keys)) == 1
    assert at.sink.repeats == []


async def test_nobody_who_listens_is_nothing_asked(make: Make) -> None:
    _, at = await make(owned_by(ANN))
    chain = ChainSection(rpc=at.rpc.url, id=31337, diamond=at.section.contracts[0])
    watch = PostureWatch(
        Platform(name=NAME, chain=chain, log="file"), at.rpc, at.facts, at.sink, lambda _: ()
    )
    await watch.look()
    assert watch.reader.calls == 0


async def test_a_persons_word_ends_with_its_time(make: Make) -> None:
    contract, at = await make(owned_by(ANN))
    ended = {"part": f"{contract} owner", "why": "ticket 7", "until": "2026-01-01T00:00:00Z"}
    await at.facts.put(EXPECTED + NAME, json.dumps([ended]))
    await at.write(contract, owned_by(BEN))
    assert told(await at.look()) == [f"silent: {contract} owner: {ANN} → {BEN}"]
    assert await expected(at.facts, NAME, datetime(2025, 1, 1, tzinfo=UTC)) == [ended]


async def test_an_invariant_that_is_not_cel_is_an_error_that_names_it() -> None:
    views = {"all": "0x" + "11" * 20 + " totalSupply()(uint256)"}
    section = WatchSection(invariants={"supply": InvariantSection(views=views, holds="all >")})
    with pytest.raises(ConfigError, match=r"watch\.invariants\.supply\.holds: not CEL"):
        invariants_of(section, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0x" + "11" * 20 + " total", "is not a view"),
        ("0x" + "11" * 20 + " balanceOf(address)(uint256)", "argument"),
        ("0x" + "11" * 20 + " balanceOf(address)(uint256) 7", "address"),
        ("totalSupply()(uint256)", "names no contract"),
    ],
)
async def test_a_view_that_cannot_be_asked_is_an_error_that_names_it(rpc: Rpc, text: str, said: str) -> None:
    section = WatchSection(invariants={"supply": InvariantSection(views={"all": text}, holds="all > 0")})
    profile = Platform(name=NAME, chain=ChainSection(rpc=rpc.url, id=31337), watch=section, log="file")
    with pytest.raises(ConfigError, match=r"watch\.invariants\.supply\.views\.all") as error:
        PostureWatch(profile, rpc, MortalFacts(), FiringRecorder(), lambda _: ())
    assert said in str(error.value)
