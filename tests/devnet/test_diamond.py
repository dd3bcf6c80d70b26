"""Routing, the guarded cut, the loupe and ownership on a real anvil."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode

from fleet.chain.node.abi import CUT, FUNCTIONS
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.devnet import artifact, node
from fleet.devnet.deploy import DEPLOYER
from fleet.errors import TxFailed
from tests.devnet.conftest import ALICE, OWNER_ONLY, World, topic

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


async def test_an_unknown_selector_is_refused(world: World) -> None:
    for data in (b"", b"\xde\xad\xbe\xef"):
        with pytest.raises(TxFailed, match=r"^reverted: Diamond: function not found$"):
            await node.transact(world.rpc, ALICE, world.at.diamond, data)


async def test_the_loupe_shows_every_selector_once(world: World) -> None:
    await whole(world)
    selectors = [selector for _, listed in await world.view("facets") for selector in listed]
    expected = {s for name in artifact.FACETS for s in artifact.load(name).selectors().values()}
    assert set(selectors) == expected
    assert len(selectors) == len(expected)


@pytest.mark.parametrize(
    ("interface", "answer"),
    [
        ("01ffc9a7", True),
        ("7f5828d0", True),
        ("1f931c1c", True),
        ("48e2b093", True),
        ("ffffffff", False),
    ],
)
async def test_supported_interfaces(world: World, interface: str, answer: bool) -> None:
    assert await world.view("supportsInterface", bytes.fromhex(interface)) is answer


async def test_ownership_moves_only_by_its_owner(world: World) -> None:
    assert await world.view("owner") == DEPLOYER
    assert await world.refused(ALICE, "transferOwnership", ALICE) == OWNER_ONLY
    (log,) = (await world.send(DEPLOYER, "transferOwnership", ALICE))["logs"]
    assert log["topics"][1:] == [topic(DEPLOYER), topic(ALICE)]
    assert await world.view("owner") == ALICE
    assert await world.refused(DEPLOYER, "clearFeedback") == OWNER_ONLY


ADD, REPLACE, REMOVE = 0, 1, 2
NEW = bytes.fromhex("deadbeef")
CORE = (
    "diamondCut",
    "facets",
    "facetFunctionSelectors",
    "facetAddresses",
    "facetAddress",
    "supportsInterface",
    "owner",
    "transferOwnership",
)


async def test_the_cut_is_guarded(world: World) -> None:
    facet = await world.view("facetAddress", FUNCTIONS["creditOf"].selector)
    cut = [(facet, ADD, [NEW])]
    assert await world.refused(ALICE, "diamondCut", cut, ZERO_ADDRESS, b"") == OWNER_ONLY
    reason = await world.refused(DEPLOYER, "diamondCut", cut, ALICE, b"")
    assert reason == "Guarded: init delegatecall forbidden"
    reason = await world.refused(DEPLOYER, "diamondCut", cut, ZERO_ADDRESS, b"x")
    assert reason == "Guarded: init calldata forbidden"


@pytest.mark.parametrize("name", CORE)
@pytest.mark.parametrize("action", [ADD, REPLACE, REMOVE])
async def test_core_selectors_cannot_be_cut(world: World, name: str, action: int) -> None:
    cut = [(ZERO_ADDRESS, action, [NEW, FUNCTIONS[name].selector])]
    reason = await world.refused(DEPLOYER, "diamondCut", cut, ZERO_ADDRESS, b"")
    assert reason == "Guarded: reserved selector"


async def test_a_cut_adds_replaces_and_removes(world: World) -> None:
    credit = await world.view("facetAddress", FUNCTIONS["creditOf"].selector)
    feedback = await world.view("facetAddress", FUNCTIONS["feedbackCount"].selector)
    release = artifact.load("ReleaseFacet").selectors().values()
    for cut in (
        [(credit, ADD, [NEW])],
        [(feedback, REPLACE, [NEW])],
        [(ZERO_ADDRESS, REMOVE, list(release))],
        [(ZERO_ADDRESS, REMOVE, list(artifact.load("CreditFacet").selectors().values()))],
        [(ZERO_ADDRESS, REMOVE, [FUNCTIONS["submitFeedback"].selector, NEW])],
    ):
        receipt = await world.send(DEPLOYER, "diamondCut", cut, ZERO_ADDRESS, b"")
        assert (
            receipt["logs"][0]["data"]
            == "0x" + encode([CUT, "address", "bytes"], [cut, ZERO_ADDRESS, b""]).hex()
        )
        await whole(world)
    assert await world.view("facetAddress", NEW) == ZERO_ADDRESS
    assert await world.refused(ALICE, "releaseName", 1) == "Diamond: function not found"
    assert await world.refused(ALICE, "submitFeedback", "x") == "Diamond: function not found"
    assert await world.view("feedbackCount") == 0


@pytest.mark.parametrize(
    ("facet", "action", "selector", "reason"),
    [
        ("credit", ADD, "creditOf", "LibDiamond: selector exists"),
        ("credit", REPLACE, "creditOf", "LibDiamond: same facet"),
        ("credit", REPLACE, "", "LibDiamond: selector unknown"),
        ("credit", REMOVE, "creditOf", "LibDiamond: remove names no facet"),
        ("zero", REMOVE, "", "LibDiamond: selector unknown"),
        ("zero", ADD, "", "LibDiamond: no code"),
        ("alice", REPLACE, "creditOf", "LibDiamond: no code"),
    ],
)
async def test_a_senseless_cut_is_refused(
    world: World, facet: str, action: int, selector: str, reason: str
) -> None:
    credit = await world.view("facetAddress", FUNCTIONS["creditOf"].selector)
    address = {"credit": credit, "zero": ZERO_ADDRESS, "alice": ALICE}[facet]
    chosen = FUNCTIONS[selector].selector if selector else NEW
    cut = [(address, action, [chosen])]
    assert await world.refused(DEPLOYER, "diamondCut", cut, ZERO_ADDRESS, b"") == reason


async def whole(world: World) -> None:
    """The four views of the loupe tell one story."""
    facets = await world.view("facets")
    assert [address for address, _ in facets] == list(await world.view("facetAddresses"))
    for address, selectors in facets:
        assert selectors
        assert list(await world.view("facetFunctionSelectors", address)) == list(selectors)
        for selector in selectors:
            assert await world.view("facetAddress", selector) == address
