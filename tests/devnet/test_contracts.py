"""The feedback log and the credits on a real anvil, with the exact reason of every refusal."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode

from fleet.chain.node.abi import FEEDBACK_SUBMITTED
from fleet.chain.node.digest import ZERO_ADDRESS, keccak256
from fleet.devnet import artifact, node
from fleet.devnet.deploy import DEPLOYER, METER
from fleet.errors import TxFailed
from tests.devnet.conftest import ALICE, BOB, OWNER_ONLY, World, topic

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


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


@pytest.mark.parametrize("token", [ZERO_ADDRESS, "0x" + "77" * 20])
async def test_a_token_that_is_not_there_pays_for_nothing(world: World, token: str) -> None:
    slot = "0x" + keccak256(b"localharness.token.storage.v1").hex()
    await world.send(DEPLOYER, "setRegistrationCost", 1)
    await world.rpc.call("anvil_setStorageAt", [world.at.diamond, slot, topic(token)])
    unset = token == ZERO_ADDRESS
    reason = await world.refused(ALICE, "depositCredits", 1)
    assert reason == ("NotConfigured()" if unset else "credits: transfer failed")
    reason = await world.refused(DEPLOYER, "withdrawTreasury", ALICE, 0)
    assert reason == ("treasury: token unset" if unset else "treasury: transfer failed")
    assert await world.refused(ALICE, "register", "alice") == "registration: transfer failed"
    if unset:
        assert await world.view("treasuryBalance") == 0
