"""The contracts on a real anvil: what each call does, and the exact reason of every refusal."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode

from fleet.chain.abi import CUT, FEEDBACK_SUBMITTED, FUNCTIONS, METADATA_KEYS, REGISTERED
from fleet.chain.digest import ZERO_ADDRESS, keccak256
from fleet.devnet import artifact, node
from fleet.devnet.deploy import DEPLOYER, METER
from fleet.errors import RpcError, TxFailed
from tests.devnet.conftest import ALICE, BOB, World

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

OWNER_ONLY = "LibDiamond: not owner"
PERSONA = METADATA_KEYS["localharness.persona"]
TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()


def topic(address: str) -> str:
    return "0x" + "0" * 24 + address[2:]


# feedback log


async def test_feedback_is_stored_and_emitted(world: World) -> None:
    receipt = await world.send(ALICE, "submitFeedback", "héllo")
    (log,) = receipt["logs"]
    assert log["topics"] == [FEEDBACK_SUBMITTED, topic(ALICE)]
    sender, timestamp, text = await world.view("feedbackAt", 0)
    assert (sender, text) == (ALICE, "héllo")
    assert bytes.fromhex(log["data"][2:]) == encode(["uint256", "string"], [timestamp, "héllo"])
    block = await world.rpc.call("eth_getBlockByNumber", [receipt["blockNumber"], False])
    assert timestamp == int(block["timestamp"], 16)


async def test_feedback_of_no_bytes_is_refused(world: World) -> None:
    assert await world.refused(ALICE, "submitFeedback", "") == "EmptyFeedback()"


async def test_the_limit_is_2048_bytes_and_not_characters(world: World) -> None:
    await world.send(ALICE, "submitFeedback", "é" * 1024)
    assert await world.refused(ALICE, "submitFeedback", "é" * 1024 + "x") == "FeedbackTooLong(2049)"
    assert await world.view("feedbackCount") == 1


async def test_feedback_at_panics_out_of_range(world: World) -> None:
    assert await world.refused(ALICE, "feedbackAt", 0) == "Panic(0x32)"


async def test_feedback_range_clamps_and_checks_its_arithmetic(world: World) -> None:
    for number in range(3):
        await world.send(ALICE, "submitFeedback", str(number))
    largest = 2**256 - 1
    assert (await world.view("feedbackRange", 1, 1))[2] == ("1",)
    assert (await world.view("feedbackRange", 1, 50))[2] == ("1", "2")
    assert (await world.view("feedbackRange", 0, largest))[2] == ("0", "1", "2")
    assert await world.view("feedbackRange", 3, largest) == ((), (), ())
    assert await world.view("feedbackRange", 1, 0) == ((), (), ())
    assert await world.refused(ALICE, "feedbackRange", 1, largest) == "Panic(0x11)"


async def test_the_log_lives_in_the_published_storage_slot(world: World) -> None:
    await world.send(ALICE, "submitFeedback", "one")
    slot = "0x" + keccak256(b"localharness.feedback.storage.v1").hex()
    assert slot == "0x7824255a151f5f954c05ae6429e6e65875a794041d7cbaf472ed0f13b3621ff2"
    assert int(await world.rpc.call("eth_getStorageAt", [world.at.diamond, slot, "latest"]), 16) == 1


async def test_only_the_owner_clears_the_log_and_indices_restart(world: World) -> None:
    await world.send(ALICE, "submitFeedback", "old")
    assert await world.refused(ALICE, "clearFeedback") == OWNER_ONLY
    (log,) = (await world.send(DEPLOYER, "clearFeedback"))["logs"]
    assert (log["topics"], int(log["data"], 16)) == (["0x" + keccak256(b"FeedbackCleared(uint256)").hex()], 1)
    await world.send(BOB, "submitFeedback", "new")
    assert (await world.view("feedbackAt", 0))[2] == "new"


# registry


async def test_registering_mints_from_id_1(world: World) -> None:
    assert await world.view("nextId") == 1
    receipt = await world.send(ALICE, "register", "alice")
    minted, registered = receipt["logs"]
    assert minted["topics"] == [TRANSFER, topic(ZERO_ADDRESS), topic(ALICE), f"0x{1:064x}"]
    assert registered["topics"] == [REGISTERED, f"0x{1:064x}", topic(ALICE)]
    assert bytes.fromhex(registered["data"][2:]) == encode(["string"], ["alice"])
    assert await world.view("nextId") == 2
    assert await world.view("idOfName", "alice") == await world.view("idOf", ALICE) == 1
    assert await world.view("ownerOfName", "alice") == await world.view("ownerOf", 1) == ALICE
    assert await world.view("ownerOfId", 1) == ALICE
    assert await world.view("isTaken", "alice") is True
    assert await world.view("nameOfId", 1) == "alice"
    assert await world.view("balanceOf", ALICE) == 1
    assert await world.view("tokenURI", 1) == "https://alice.localharness.xyz/"
    assert await world.view("mainOf", ALICE) == 0


async def test_a_free_name_has_no_owner(world: World) -> None:
    assert await world.view("ownerOfName", "free") == await world.view("ownerOfId", 9) == ZERO_ADDRESS
    assert await world.view("idOfName", "free") == 0
    assert await world.view("isTaken", "free") is False
    assert await world.refused(ALICE, "ownerOf", 9) == "ERC721: invalid token ID"
    assert await world.refused(ALICE, "tokenURI", 9) == "ERC721: invalid token ID"
    assert await world.refused(ALICE, "balanceOf", ZERO_ADDRESS) == "ERC721: zero address"


async def test_a_taken_name_is_refused(world: World) -> None:
    await world.mint(ALICE, "alice")
    assert await world.refused(BOB, "register", "alice") == "name taken"


def is_label(name: bytes) -> bool:
    """RFC 1035 as the facts put it: the model that the contract is held against."""
    allowed = set(b"abcdefghijklmnopqrstuvwxyz0123456789-")
    return 1 <= len(name) <= 63 and set(name) <= allowed and name[:1] != b"-" and name[-1:] != b"-"


NAMES = ["", "a", "-", "-a", "a-", "a-b", "0", "a" * 63, "a" * 64, "A", "a.b", "a b", "é", "a\0", "a_b"]
NAMES += ["`", "{", "/", ":", "--", "xn--a", ".", "a/../b"]


@pytest.mark.parametrize("name", NAMES)
async def test_names_are_dns_labels(world: World, name: str) -> None:
    if is_label(name.encode()):
        assert await world.mint(ALICE, name) == 1
    else:
        assert await world.refused(ALICE, "register", name) == f"InvalidName({name[:80]})"
        assert await world.view("nextId") == 1


async def test_of_all_bytes_only_letters_and_digits_pass_alone(world: World) -> None:
    for value in range(256):
        data = FUNCTIONS["register"].selector + encode(["bytes"], [bytes([value])])
        call = world.rpc.call("eth_call", [{"to": world.at.diamond, "data": "0x" + data.hex()}, "latest"])
        if is_label(bytes([value])):
            assert int(await call, 16) == 1
        else:
            with pytest.raises(RpcError) as caught:
                await call
            assert caught.value.data.startswith("0x7f19f48d")


async def test_registration_costs_what_the_owner_says(world: World) -> None:
    cost = 10**18
    assert await world.refused(ALICE, "setRegistrationCost", cost) == OWNER_ONLY
    (log,) = (await world.send(DEPLOYER, "setRegistrationCost", cost))["logs"]
    assert bytes.fromhex(log["data"][2:]) == encode(["uint256", "uint256"], [0, cost])
    assert await world.refused(ALICE, "register", "alice") == "registration: transfer failed"
    assert await world.view("isTaken", "alice") is False
    await world.rich(ALICE, cost)
    await world.mint(ALICE, "alice")
    assert await world.view("treasuryBalance") == cost
    assert await world.rpc.view(world.at.token, "balanceOf", ALICE) == 0


async def test_an_invalid_name_costs_nothing(world: World) -> None:
    await world.send(DEPLOYER, "setRegistrationCost", 5)
    await world.rich(ALICE, 5)
    await world.refused(ALICE, "register", "-")
    assert await world.rpc.view(world.at.token, "balanceOf", ALICE) == 5


async def test_the_treasury_pays_only_the_owner_s_choice(world: World) -> None:
    await world.rich(ALICE, 7)
    await world.send(ALICE, "depositCredits", 7)
    assert await world.refused(ALICE, "withdrawTreasury", ALICE, 1) == OWNER_ONLY
    assert await world.refused(DEPLOYER, "withdrawTreasury", ZERO_ADDRESS, 1) == "treasury: zero recipient"
    assert await world.refused(DEPLOYER, "withdrawTreasury", BOB, 8) == "treasury: transfer failed"
    await world.send(DEPLOYER, "withdrawTreasury", BOB, 7)
    assert await world.rpc.view(world.at.token, "balanceOf", BOB) == 7


async def test_only_the_owner_of_a_name_describes_it(world: World) -> None:
    ident = await world.mint(ALICE, "alice")
    assert await world.refused(BOB, "setMetadata", ident, PERSONA, b"x") == "not owner"
    assert await world.refused(BOB, "setMetadata", 99, PERSONA, b"x") == "not owner"
    value = bytes(range(256)) * 70  # above the publish cap: the chain has no limit
    (log,) = (await world.send(ALICE, "setMetadata", ident, PERSONA, value))["logs"]
    assert log["topics"][1:] == [f"0x{ident:064x}", "0x" + PERSONA.hex()]
    assert await world.view("metadata", ident, PERSONA) == value
    await world.send(ALICE, "setMetadata", ident, PERSONA, b"")
    assert await world.view("metadata", ident, PERSONA) == b""


# release


async def test_release_frees_the_name_but_not_the_traces(world: World) -> None:
    ident = await world.mint(ALICE, "alice")
    await world.send(ALICE, "setMetadata", ident, PERSONA, b"old")
    burnt, released = (await world.send(ALICE, "releaseName", ident))["logs"]
    assert burnt["topics"] == [TRANSFER, topic(ALICE), topic(ZERO_ADDRESS), f"0x{ident:064x}"]
    assert released["topics"][1:] == [f"0x{ident:064x}", topic(ALICE)]
    assert await world.view("isTaken", "alice") is False
    assert await world.view("nameOfId", ident) == ""
    assert await world.view("balanceOf", ALICE) == 0
    assert await world.view("idOf", ALICE) == ident
    assert await world.view("metadata", ident, PERSONA) == b"old"
    assert await world.refused(ALICE, "setMetadata", ident, PERSONA, b"new") == "not owner"
    assert await world.mint(BOB, "alice") == ident + 1
    assert await world.view("metadata", ident + 1, PERSONA) == b""


async def test_only_the_owner_releases(world: World) -> None:
    ident = await world.mint(ALICE, "alice")
    assert await world.refused(BOB, "releaseName", ident) == "NotOwner()"
    await world.send(ALICE, "releaseName", ident)
    assert await world.refused(ALICE, "releaseName", ident) == "NotOwner()"


async def test_main_cannot_be_released(world: World) -> None:
    ident = await world.mint(ALICE, "alice")
    await world.send(ALICE, "registerMain", ident)
    assert await world.refused(ALICE, "releaseName", ident) == "CannotReleaseMain()"
    await world.send(ALICE, "clearMain")
    await world.send(ALICE, "releaseName", ident)


async def test_admin_burns_names_and_skips_free_ids(world: World) -> None:
    first, second = await world.mint(ALICE, "one"), await world.mint(ALICE, "two")
    await world.send(ALICE, "registerMain", first)
    assert await world.refused(ALICE, "adminBurnNames", [first]) == OWNER_ONLY
    await world.send(DEPLOYER, "adminBurnNames", [first, first, 99])
    assert await world.view("mainOf", ALICE) == 0
    assert await world.view("balanceOf", ALICE) == 1
    assert await world.view("nameOfId", second) == "two"


async def test_admin_resets_everything_but_the_counter(world: World) -> None:
    await world.mint(ALICE, "one")
    await world.mint(BOB, "two")
    assert await world.refused(ALICE, "adminResetAll") == OWNER_ONLY
    await world.send(DEPLOYER, "adminResetAll")
    assert [await world.view("isTaken", name) for name in ("one", "two")] == [False, False]
    assert await world.mint(ALICE, "one") == 3


# main identity


async def test_main_is_set_by_its_owner_only(world: World) -> None:
    ident = await world.mint(ALICE, "alice")
    assert await world.refused(ALICE, "registerMain", 99) == "UnknownToken(99)"
    assert await world.refused(BOB, "registerMain", ident) == f"NotOwner({ident}, {BOB})"
    (log,) = (await world.send(ALICE, "registerMain", ident))["logs"]
    assert log["topics"][1:] == [topic(ALICE), f"0x{ident:064x}"]
    assert await world.view("mainOf", ALICE) == ident
    assert await world.view("mainNameOf", ALICE) == "alice"
    assert await world.view("isMain", ident) is True
    assert await world.view("isMain", 99) is False
    assert await world.view("mainNameOf", BOB) == ""


async def test_main_is_charged_once(world: World) -> None:
    ident = await world.mint(ALICE, "alice")
    assert await world.refused(ALICE, "setMainCost", 3) == OWNER_ONLY
    await world.send(DEPLOYER, "setMainCost", 3)
    assert await world.view("mainCost") == 3
    assert await world.refused(ALICE, "registerMain", ident) == "main: transfer failed"
    await world.rich(ALICE, 9)
    await world.send(ALICE, "registerMain", ident)
    assert (await world.send(ALICE, "registerMain", ident))["logs"] == []
    assert await world.rpc.view(world.at.token, "balanceOf", ALICE) == 6


async def test_clearing_an_unset_main_is_silent(world: World) -> None:
    assert (await world.send(ALICE, "clearMain"))["logs"] == []


# credits


async def test_credits_are_claimed_once_a_day(world: World) -> None:
    await world.send(ALICE, "claimDaily")
    assert await world.view("creditOf", ALICE) == 10 * 10**18
    already = keccak256(b"AlreadyClaimed()")[:4].hex()
    assert already in await world.refused(ALICE, "claimDaily")
    await world.send(BOB, "claimDaily")
    await world.rpc.call("evm_increaseTime", [86_400])
    await world.send(ALICE, "claimDaily")
    assert await world.view("creditOf", ALICE) == 20 * 10**18


async def test_credits_are_bought_with_the_token(world: World) -> None:
    assert await world.refused(ALICE, "depositCredits", 4) == "credits: transfer failed"
    await world.rich(ALICE, 4)
    await world.send(ALICE, "depositCredits", 4)
    assert await world.view("creditOf", ALICE) == 4
    assert await world.view("treasuryBalance") == 4


async def test_only_the_meter_charges_and_never_below_zero(world: World) -> None:
    await world.send(ALICE, "claimDaily")
    assert await world.refused(ALICE, "meter", ALICE, 1) == "NotMeter()"
    assert await world.refused(DEPLOYER, "meter", ALICE, 1) == "NotMeter()"
    assert await world.refused(METER, "meter", ALICE, 10 * 10**18 + 1) == "InsufficientCredits()"
    await world.send(METER, "meter", ALICE, 10**18)
    assert await world.view("creditOf", ALICE) == 9 * 10**18


async def test_without_a_meter_nothing_is_charged(world: World) -> None:
    set_meter = artifact.load("CreditFacet").selectors()["setMeter(address)"]
    call = set_meter + encode(["address"], [ZERO_ADDRESS])
    with pytest.raises(TxFailed, match=OWNER_ONLY):
        await node.transact(world.rpc, ALICE, world.at.diamond, call)
    await node.transact(world.rpc, DEPLOYER, world.at.diamond, call)
    assert await world.refused(METER, "meter", ALICE, 0) == "NotConfigured()"


# diamond


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


@pytest.mark.parametrize(("interface", "answer"), [
    ("01ffc9a7", True), ("7f5828d0", True), ("1f931c1c", True), ("48e2b093", True), ("ffffffff", False),
])  # fmt: skip
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


@pytest.mark.parametrize(("facet", "action", "selector", "reason"), [
    ("credit", ADD, "creditOf", "LibDiamond: selector exists"),
    ("credit", REPLACE, "creditOf", "LibDiamond: same facet"),
    ("credit", REPLACE, "", "LibDiamond: selector unknown"),
    ("credit", REMOVE, "creditOf", "LibDiamond: remove names no facet"),
    ("zero", REMOVE, "", "LibDiamond: selector unknown"),
    ("zero", ADD, "", "LibDiamond: no code"),
    ("alice", REPLACE, "creditOf", "LibDiamond: no code"),
])  # fmt: skip
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
