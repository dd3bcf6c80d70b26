"""What is signed in place of an earlier intent excludes it: its maker may live, and still send it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.chain.keys import address_of, fresh
from fleet.chain.ports import TxRequest
from fleet.chain.signing.tx import parse, sign
from fleet.devnet import node
from fleet.errors import LostRun, RpcError, TryAgain, TxFailed, Unreachable
from tests.chain.conftest import ETHER, Chain, Kit, LossyRpc, make_kit

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


def finding(kit: Kit, text: str) -> TxRequest:
    """What a run writes to the log."""
    return replace(kit.post(text), run="ab12")


async def refused(kit: Kit, text: str) -> bytes:
    """Bytes that the node has refused once: their sender could not pay then, and can now."""
    address = address_of(kit.identity)
    await kit.rpc.call("anvil_setBalance", [address, "0x0"])
    with pytest.raises(RpcError, match=r"(?i)insufficient funds"):
        await kit.signer.submit(finding(kit, text))
    await node.fund(kit.chain.rpc, address, ETHER)
    return bytes(kit.journal.intents[1]["raw"])


async def test_the_replacement_has_the_nonce_of_what_it_replaces(chain: Chain) -> None:
    """Once it is mined the node refuses the earlier bytes."""
    async with LossyRpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc)
        earlier = await refused(kit, "once")
        await kit.signer.submit(finding(kit, "once"))
        nonces = [parse(intent["raw"])[0].nonce for intent in kit.journal.intents.values()]
        assert nonces == [0, 0]
        assert await kit.signer.is_dead(earlier)
        assert isinstance(
            (await rpc.batch([("eth_sendRawTransaction", ["0x" + earlier.hex()])]))[0], RpcError
        )
        assert await kit.log.find("once", address_of(kit.identity)) is not None


async def test_a_nonce_that_waits_in_the_pool_is_not_passed_over(chain: Chain) -> None:
    """The node counts what waits: without the rule the same entry would get the nonce after it."""
    async with LossyRpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, deadline_s=0.3)
        rpc.drop = 99
        with pytest.raises(Unreachable):
            await kit.signer.submit(finding(kit, "twice"))
        rpc.drop = 0
        earlier = bytes(kit.journal.intents[1]["raw"])
        await kit.journal.tx_done(1, "failed", {"reason": "given up"})
        await chain.mining(False)
        try:
            await rpc.batch([("eth_sendRawTransaction", ["0x" + earlier.hex()])])  # its maker lives
            with pytest.raises(TxFailed, match="in no block yet"):
                await kit.signer.submit(finding(kit, "twice"))
        finally:
            await chain.mining(True)
            await chain.mine()
        texts = [entry.text for entry in await kit.log.range(0, 10_000)]
        assert texts.count("twice") == 1
        assert {parse(intent["raw"])[0].nonce for intent in kit.journal.intents.values()} == {0}


async def test_what_another_transaction_displaces_is_looked_at_again(chain: Chain) -> None:
    async with LossyRpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, deadline_s=0.3)
        rpc.drop = 99
        with pytest.raises(Unreachable):
            await kit.signer.submit(finding(kit, "mine"))
        rpc.drop = 0
        raw = bytes(kit.journal.intents[1]["raw"])
        unsigned = parse(raw)[0]
        other = sign(
            replace(unsigned, data=kit.post("other").data, max_fee=unsigned.max_fee * 2), kit.identity
        )
        await chain.mining(False)
        try:
            await rpc.batch([("eth_sendRawTransaction", ["0x" + other.raw.hex()])])
            assert (await kit.signer.settle_raw(raw)).state == "pending"
        finally:
            await chain.mining(True)
            await chain.mine()
        settled = await kit.signer.settle_raw(raw)
        assert (settled.state, settled.reason) == ("failed", "another transaction used its nonce")


async def test_a_nonce_counts_as_used_once_its_block_does(chain: Chain) -> None:
    async with LossyRpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, deadline_s=0.3, confirmations=2)
        rpc.drop = 99
        with pytest.raises(Unreachable):
            await kit.signer.submit(finding(kit, "mine"))
        rpc.drop = 0
        raw = bytes(kit.journal.intents[1]["raw"])
        other = sign(replace(parse(raw)[0], data=kit.post("other").data), kit.identity)
        await rpc.batch([("eth_sendRawTransaction", ["0x" + other.raw.hex()])])
        assert (await kit.signer.settle_raw(raw)).state == "pending"
        for _ in range(2):
            await chain.mine()
        assert (await kit.signer.settle_raw(raw)).state == "failed"


async def test_bytes_are_dead_when_their_sender_cannot_pay(chain: Chain) -> None:
    async with LossyRpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc)
        unsigned = parse(await refused(kit, "poor"))[0]
        assert await kit.signer.is_dead(sign(unsigned, fresh()).raw)
        assert not await kit.signer.is_dead(sign(unsigned, kit.identity).raw)


@pytest.mark.parametrize(("again", "error"), [(LostRun("gone"), LostRun), (None, TryAgain)])
async def test_an_intent_of_long_ago_is_not_sent(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, again: Exception | None, error: type[Exception]
) -> None:
    """The process stood still between its intent and the broadcast; and the journal answers too late."""
    times = iter(range(0, 10_000, 60))

    async def still_open(effect: int) -> None:
        if again is not None:
            raise again

    monkeypatch.setattr("fleet.chain.signing.signer.clock_gettime", lambda clock: next(times))
    monkeypatch.setattr(kit.journal, "still_open", still_open)
    with pytest.raises(error):
        await kit.signer.submit(finding(kit, "late"))
    assert len(kit.journal.open()) == 1
    assert await kit.log.find("late", address_of(kit.identity)) is None
