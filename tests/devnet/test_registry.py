"""Names, metadata, MAIN and the treasury on a real anvil, with the exact reason of every refusal."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode

from fleet.chain.node.abi import FUNCTIONS, REGISTERED
from fleet.chain.node.digest import ZERO_ADDRESS, keccak256, metadata_key
from fleet.devnet.deploy import DEPLOYER
from fleet.errors import RpcError
from tests.devnet.conftest import ALICE, BOB, OWNER_ONLY, World, topic

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

PERSONA = metadata_key("localharness.persona")
TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()


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
