"""The chain's explorer on real diamonds: a planted fault is found and named, the clean ones are silent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import pytest

from fleet.chain.node import codec
from fleet.chain.node.abi import CUT
from fleet.chain.node.digest import ZERO_ADDRESS, keccak256
from fleet.chain.node.rpc import Rpc
from fleet.devnet import artifact, node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER, create_diamond, deploy
from fleet.devnet.seeded_names import register_seeded_names
from fleet.oracles.model import Violation
from tests.devnet.conftest import ALICE, BOB
from tests.drivers.simulating import CONTRACTS, compiled, explored, through_policy
from tests.platforms.bare import FACETS, LEFT_OUT

pytestmark = pytest.mark.anyio

FAULTS: Mapping[str, tuple[str, str, str, str]] = {
    # what it is: its text, what it becomes, the oracle, words of the title
    "a fee that anyone sets": (
        "requireOwner();\n        LibHouse.store().relayFee",
        "store();\n        LibHouse.store().relayFee",
        "open-to-strangers",
        "setRelayFee() changes relayFee from 5 to ",
    ),
    "a treasury that anyone takes": (
        "requireOwner();\n        LibHouse.store().treasury",
        "store();\n        LibHouse.store().treasury",
        "open-to-strangers",
        "setTreasury() changes treasury from ",
    ),
    "a name that anyone gives away": (
        'require(l.ownerOf[id] == msg.sender, "house: not yours");\n        require(to',
        "require(to",
        "open-to-strangers",
        "transferName() changes ownerOfId(1) from ",
    ),
    "metadata that anyone writes": (
        'require(l.ownerOf[id] == msg.sender, "house: not yours");\n        l.metadata',
        "l.metadata",
        "open-to-strangers",
        "setMetadata() changes metadata(1,app) from nothing to ",
    ),
    "funds that anyone withdraws": (
        "requireOwner();\n        (bool ok,) = to",
        "store();\n        (bool ok,) = to",
        "open-to-strangers",
        "withdrawAll() changes treasuryBalance from 7000 to 0",
    ),
    "credit for nothing": (
        "requireOwner();\n        LibHouse.store().creditOf",
        "store();\n        LibHouse.store().creditOf",
        "open-to-strangers",
        "grantCredits() gives its caller ",
    ),
    "a pause that anyone presses": (
        "requireOwner();\n        LibHouse.store().paused",
        "store();\n        LibHouse.store().paused",
        "open-to-strangers",
        "pause() changes paused from 0 to 1",
    ),
    "a limit that is one off": (
        "length <= 64",
        "length <= 65",
        "limit-not-held",
        "leaveNote() accepts 65 bytes; maxNoteLength is 64",
    ),
    "a limit that refuses its last byte": (
        "length <= 64",
        "length < 64",
        "limit-not-held",
        "leaveNote() refuses 64 bytes; maxNoteLength is 64",
    ),
    "a name that no face can show": (
        "length < 64 &&",
        "length < 65 &&",
        "ghost-name",
        "register() accepts a name of 64 bytes",
    ),
    "an owner by another id": (
        "owner = LibHouse.store().ownerOf[id];",
        "owner = LibHouse.store().ownerOf[id == 2 ? 1 : id];",
        "views-disagree",
        "ownerOfId(2) is ",
    ),
    "a withdrawal that is paid twice": (
        """l.creditOf[msg.sender] = 0;
        (bool ok,) = msg.sender.call{value: amount}("");
        require(ok, "house: not paid");""",
        """(bool ok,) = msg.sender.call{value: amount}("");
        require(ok, "house: not paid");
        l.creditOf[msg.sender] = 0;""",
        "re-entry",
        "withdraw() pays 2000 wei when re-entered, not 1000 wei",
    ),
    "a name that leads elsewhere": (
        "return LibHouse.store().idOf[name];",
        "return LibHouse.store().idOf[name] * 2;",
        "views-disagree",
        "nameOfId(1) is alpha, idOfName(alpha) is 2",
    ),
    "a balance that is not a count": (
        "return LibHouse.store().balanceOf[owner];",
        "return LibHouse.store().balanceOf[owner] + 1;",
        "views-disagree",
        "balanceOf(",
    ),
}
HOUSE = ("NamesFacet", "FundsFacet", "NotesFacet")
ADD = 0


@dataclass(frozen=True)
class House:
    """One chain, on which a diamond is created per variant of the source."""

    rpc: Rpc
    url: str

    async def diamond(self, source: str) -> str:
        """A diamond of this source, with two names, a fee, and funds."""
        cuts = []
        for name in ("DiamondLoupeFacet", "OwnershipFacet"):
            at = await node.create(self.rpc, DEPLOYER, artifact.load(name).code)
            kept = [one for text, one in artifact.load(name).selectors().items() if "supports" not in text]
            cuts.append((at, ADD, kept))
        contracts = compiled(source)
        for name in HOUSE:
            code, selectors = contracts[name]
            cuts.append(
                (await node.create(self.rpc, DEPLOYER, code), ADD, [*map(bytes.fromhex, selectors.values())])
            )
        words = codec.encode(["address", CUT, "address", "bytes"], [DEPLOYER, cuts, ZERO_ADDRESS, b""])
        diamond = await node.create(self.rpc, DEPLOYER, artifact.load("Diamond").code + words)
        await node.invoke(self.rpc, ALICE, diamond, "register", "alpha")
        await node.invoke(self.rpc, BOB, diamond, "register", "beta")
        await self.send(diamond, "setRelayFee(uint256)", ["uint256"], [5])
        await self.send(diamond, "setTreasury(address)", ["address"], [ALICE])
        await self.rpc.call("anvil_setBalance", [diamond, hex(7000)])
        return diamond

    async def send(self, diamond: str, signature: str, kinds: list[str], values: list[Any]) -> None:
        data = keccak256(signature.encode())[:4] + codec.encode(kinds, values)
        await node.transact(self.rpc, DEPLOYER, diamond, data)


@pytest.fixture(scope="module")
async def house(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with Anvil(tmp_path_factory.mktemp("house") / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        yield House(rpc, anvil.url)


SOURCE = (CONTRACTS / "House.sol").read_text("utf-8")


async def found_on(diamond: str, **more: Any) -> list[Violation]:
    violations, _, _ = await anyio.to_thread.run_sync(lambda: explored(diamond, **more))
    return violations


async def test_clean_diamonds_are_silent(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second platform's, the devnet's with its standing names, and the smallest; nothing is sent to any."""
    clean = await house.diamond(SOURCE)
    devnet = await deploy(house.rpc)
    await register_seeded_names(house.rpc, devnet.diamond, devnet.token, devnet.deployer)
    await node.invoke(house.rpc, ALICE, devnet.diamond, "submitFeedback", "an entry")
    bare = await create_diamond(house.rpc, FACETS, left_out=LEFT_OUT)
    await node.invoke(house.rpc, ALICE, bare, "register", "alpha")
    before = await house.rpc.call("eth_blockNumber")
    passed = through_policy(monkeypatch, house.url)
    for diamond in (clean, devnet.diamond, bare):
        assert await found_on(diamond) == []
    assert (
        {"eth_simulateV1"}
        <= set(passed)
        <= {
            "eth_blockNumber",
            "eth_call",
            "eth_getBlockByNumber",
            "eth_getCode",
            "eth_simulateV1",
        }
    )
    assert await house.rpc.call("eth_blockNumber") == before


APART = ("a limit that refuses its last byte", "a name that leads elsewhere")
"""Faults that cannot be planted beside others of the same place."""


@pytest.mark.parametrize(
    "planted", [[one for one in FAULTS if one not in APART], list(APART)], ids=["many", "two"]
)
async def test_planted_faults_are_found_and_named_and_nothing_else(
    planted: list[str], house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SOURCE
    for fault in planted:
        text, instead, _, _ = FAULTS[fault]
        assert source.count(text) == 1, fault
        source = source.replace(text, instead)
    diamond = await house.diamond(source)
    through_policy(monkeypatch, house.url)
    found = await found_on(diamond)
    seen = sorted((one.oracle, one.sighting.title) for one in found)
    for fault in planted:
        _, _, oracle, title = FAULTS[fault]
        assert [one for one in seen if one[0] == oracle and one[1].startswith(title)], (fault, seen)
    assert len(found) == len(planted), seen
    assert all(one.sighting.whole for one in found)
