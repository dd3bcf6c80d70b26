"""The pipeline against a real node: nonces, crashes, lost answers, failures, fences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.chain.keys import address_of, fresh
from fleet.chain.node import abi
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Paid, Role, TxRequest
from fleet.chain.signing.never import NeverList
from fleet.chain.signing.tx import UnsignedTx, parse, sign
from fleet.devnet import node
from fleet.errors import (
    BudgetExceeded,
    ConfigError,
    Refused,
    RpcError,
    TxFailed,
    Unfunded,
    Unreachable,
    WrongTarget,
)
from tests.chain.conftest import ETHER, Chain, Kit, LossyRpc, Purse, make_kit

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


def lossy(kit: Kit) -> LossyRpc:
    assert isinstance(kit.rpc, LossyRpc)
    return kit.rpc


async def test_intent_is_journalled_with_the_bytes_that_are_sent(kit: Kit) -> None:
    receipt = await kit.signer.submit(kit.post("hello"))
    assert receipt.status == 1
    (intent,) = kit.journal.intents.values()
    assert intent["tx"] == receipt.tx
    assert parse(intent["raw"])[1] == address_of(kit.identity) == intent["sender"]
    assert kit.journal.ends[1][0] == "done"


async def test_bytes_are_durable_before_they_are_broadcast(kit: Kit) -> None:
    lossy(kit).drop = 99
    with pytest.raises(Unreachable):
        await kit.signer.submit(kit.post("never arrived"))
    (intent,) = kit.journal.open()
    assert not await kit.signer._receipts.known(intent["tx"])


async def test_recovery_sends_the_same_bytes_once(kit: Kit) -> None:
    lossy(kit).drop = 99
    with pytest.raises(Unreachable):
        await kit.signer.submit(kit.post("crash before broadcast"))
    lossy(kit).drop = 0
    (intent,) = kit.journal.open()
    heir = await make_kit(kit.chain, kit.rpc)
    settled = [await heir.signer.settle_raw(intent["raw"]) for _ in range(2)]
    assert [item.state for item in settled] == ["mined", "mined"]
    assert settled[0].receipt == settled[1].receipt
    assert settled[0].tx == intent["tx"]
    assert await kit.log.find("crash before broadcast", address_of(kit.identity)) is not None


async def test_recovery_finds_what_was_mined_without_sending(kit: Kit) -> None:
    receipt = await kit.signer.submit(kit.post("mined, then killed"))
    lossy(kit).drop = 99
    settled = await kit.signer.settle_raw(kit.journal.intents[1]["raw"])
    assert (settled.state, settled.receipt) == ("mined", receipt)


async def test_recovery_of_replaced_bytes_is_failed(kit: Kit) -> None:
    lossy(kit).drop = 99
    with pytest.raises(Unreachable):
        await kit.signer.submit(kit.post("first"))
    lossy(kit).drop = 0
    await kit.signer.submit(kit.post("took its nonce"))
    settled = await kit.signer.settle_raw(kit.journal.intents[1]["raw"])
    assert (settled.state, settled.reason) == ("failed", "another transaction used its nonce")


async def test_recovery_at_observe_does_not_send_an_act(kit: Kit, tmp_path: Path) -> None:
    wallet = kit.wallet(tmp_path)
    await funded(kit, wallet.scope.keys.new("a"))  # type: ignore[attr-defined]
    lossy(kit).drop = 99
    with pytest.raises(Unreachable):
        await kit.signer.submit(register(kit, "qa-ab12-1"))
    lossy(kit).drop = 0
    kit.dial.word = "observe"
    settled = await kit.signer.settle_raw(kit.journal.open()[0]["raw"])
    assert settled.state == "failed"
    assert await kit.names.id_of_name("qa-ab12-1") == 0


async def test_lost_answer_is_no_second_transaction(kit: Kit) -> None:
    lossy(kit).mute = 1
    before = await kit.log.count()
    assert (await kit.signer.submit(kit.post("answer lost"))).status == 1
    assert await kit.log.count() == before + 1
    assert len(kit.journal.intents) == 1


async def test_already_known_bytes_count_as_sent(kit: Kit) -> None:
    lossy(kit).mute = 1
    await kit.chain.mining(False)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kit.signer.submit, kit.post("known in the pool"))
            await anyio.sleep(0.5)
            await kit.chain.mine()
    finally:
        await kit.chain.mining(True)
    assert [status for status, _ in kit.journal.ends.values()] == ["done"]


async def test_two_senders_on_one_key(kit: Kit) -> None:
    other = await make_kit(kit.chain, kit.rpc)
    other.signer._standing[Role.IDENTITY] = kit.identity
    results = []

    async def post(signer: object, text: str) -> None:
        results.append(await signer.submit(kit.post(text)))  # type: ignore[attr-defined]

    async with anyio.create_task_group() as tasks:
        for place in range(6):
            tasks.start_soon(post, (kit.signer, other.signer)[place % 2], f"race {place}")
    assert [receipt.status for receipt in results] == [1] * 6


async def test_concurrent_submits_of_one_signer_take_consecutive_nonces(kit: Kit) -> None:
    async with anyio.create_task_group() as tasks:
        for place in range(5):
            tasks.start_soon(kit.signer.submit, kit.post(f"parallel {place}"))
    assert sorted(intent["nonce"] for intent in kit.journal.intents.values()) == [0, 1, 2, 3, 4]


async def test_a_dropped_transaction_leaves_no_gap(kit: Kit) -> None:
    await kit.chain.mining(False)
    try:
        (sent,) = await kit.signer.broadcast([kit.post("dropped by the node")])
        await kit.rpc.call("anvil_dropTransaction", [sent.hash])  # type: ignore[union-attr]
    finally:
        await kit.chain.mining(True)
    assert (await kit.signer.submit(kit.post("uses the free nonce"))).status == 1
    assert kit.journal.intents[2]["nonce"] == 0


async def test_not_mined_in_time_stays_open(chain: Chain) -> None:
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, deadline_s=0.3)
        await chain.mining(False)
        try:
            with pytest.raises(TxFailed) as caught:
                await kit.signer.submit(kit.post("slow"))
            assert caught.value.kind == "not_mined"
            settled = await kit.signer.settle_raw(kit.journal.open()[0]["raw"])
            assert settled.state == "pending"
        finally:
            await chain.mining(True)
            await chain.mine()
        assert (await kit.signer.settle_raw(kit.journal.open()[0]["raw"])).state == "mined"


async def test_status_zero_names_the_reason(kit: Kit, tmp_path: Path) -> None:
    await minted(kit, tmp_path, "qa-ab12-162")  # a name that no other test takes: it stays
    with pytest.raises(TxFailed, match="name taken") as caught:
        await kit.signer.submit(register(kit, "qa-ab12-162"))
    assert caught.value.kind == "reverted"
    assert caught.value.gas_used > 21_000
    status, data = kit.journal.ends[max(kit.journal.ends)]
    assert (status, data["failure"], data["reason"]) == ("failed", "reverted", "name taken")


async def test_out_of_gas_is_told_apart(kit: Kit) -> None:
    receipt = await kit.signer.submit(kit.post("x" * 300, gas=120_000), check=False)
    assert (receipt.status, receipt.failure, receipt.reason) == (0, "oog", "")


async def test_empty_sponsor_is_the_nodes_refusal(chain: Chain) -> None:
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, wealth=1000)
        named = re.compile(f"insufficient funds.*{address_of(kit.identity)}, the identity key", re.I)
        with pytest.raises(Unfunded, match=named):
            await kit.signer.submit(kit.post("no money"))
        assert kit.journal.ends[1][0] == "failed"


async def test_sender_that_runs_dry_in_a_batch_ends_it(chain: Chain) -> None:
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, deadline_s=1)
        fee = await kit.signer.max_fee()
        await node.fund(chain.rpc, address_of(kit.identity), 5_000_000 * fee)
        outcomes = await kit.signer.submit_many(
            [kit.post("fits"), kit.post("does not", gas=49_000_000), *[kit.post("after")] * 50]
        )
    assert not isinstance(outcomes[0], Exception)
    assert outcomes[0].status == 1
    assert isinstance(outcomes[1], RpcError)
    assert "not sent" in str(outcomes[51])


async def test_chain_that_changes_under_us_gets_no_signature(chain: Chain) -> None:
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, id=4217)
        with pytest.raises(WrongTarget, match="31337"):
            await kit.signer.submit(kit.post("wrong chain"))
    assert kit.journal.intents == {}


async def test_node_that_asks_too_much_is_refused(kit: Kit) -> None:
    await kit.rpc.call("anvil_setNextBlockBaseFeePerGas", [hex(60 * 10**9)])
    await kit.chain.mine()
    try:
        with pytest.raises(Refused) as caught:
            await kit.signer.submit(kit.post("expensive"))
        assert caught.value.rule == "fee"
    finally:
        await kit.rpc.call("anvil_setNextBlockBaseFeePerGas", [hex(10**9)])
        await kit.chain.mine()
    assert kit.journal.intents == {}


async def test_dial_is_read_again_between_budget_and_signature(chain: Chain, tmp_path: Path) -> None:
    async with Rpc(chain.rpc.url) as rpc:

        class TurnsDown(Purse):
            async def spend(self, unit: Paid, /) -> int:
                kit.dial.word = "observe"
                return await super().spend(unit)

        kit = await make_kit(chain, rpc)
        kit.purse = TurnsDown()
        wallet = kit.wallet(tmp_path)
        wallet.scope.keys.new("a")  # type: ignore[attr-defined]
        with pytest.raises(Refused) as caught:
            await kit.signer.submit(register(kit, "qa-ab12-1"))
    assert caught.value.rule == "dial"
    assert kit.journal.intents == {}


async def test_dial_that_raises_is_observe(kit: Kit, tmp_path: Path) -> None:
    kit.wallet(tmp_path).scope.keys.new("a")  # type: ignore[attr-defined]

    class Broken(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise OSError("gone")

    kit.dial.word = Broken()
    with pytest.raises(Refused) as caught:
        await kit.signer.submit(register(kit, "qa-ab12-1"))
    assert caught.value.rule == "dial"
    assert (await kit.signer.submit(kit.post("reporting still works"))).status == 1


async def test_budget_is_charged_before_the_signature(kit: Kit, tmp_path: Path) -> None:
    kit.wallet(tmp_path)
    kit.purse.left = 3
    for place in range(3):
        await kit.signer.submit(kit.post(f"write {place}", run="ab12", charge="reports"))
    with pytest.raises(BudgetExceeded):
        await kit.signer.submit(kit.post("one too many", run="ab12", charge="reports"))
    assert len(kit.journal.intents) == 3


async def test_configured_never_list_reaches_the_signer(chain: Chain) -> None:
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, never=frozenset([abi.FUNCTIONS["submitFeedback"].selector]))
        with pytest.raises(Refused) as caught:
            await kit.signer.submit(kit.post("forbidden here"))
    assert caught.value.rule == "never"


async def test_a_selector_added_meanwhile_acts_at_the_next_signature(chain: Chain) -> None:
    words: tuple[str, ...] = ()
    never = NeverList(lambda: words)
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, never=never)
        await kit.signer.submit(kit.post("still permitted"))
        words = ("0x" + abi.FUNCTIONS["submitFeedback"].selector.hex(),)
        with pytest.raises(Refused) as caught:
            await kit.signer.submit(kit.post("forbidden now"))
    assert caught.value.rule == "never"
    words = ("0x12",)
    with pytest.raises(ConfigError, match="0x12"):  # a bad list permits nothing; a reload refuses it
        assert b"any " in never


async def test_closed_run_signs_nothing(kit: Kit, tmp_path: Path) -> None:
    kit.wallet(tmp_path).scope.keys.new("a")  # type: ignore[attr-defined]
    kit.signer.close_run("ab12")
    with pytest.raises(Refused) as caught:
        await kit.signer.submit(register(kit, "qa-ab12-1"))
    assert caught.value.rule == "run"


async def test_receipt_needs_its_confirmations(chain: Chain) -> None:
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc, deadline_s=0.4, confirmations=2)
        with pytest.raises(TxFailed, match="in no block yet"):
            await kit.signer.submit(kit.post("shallow"))
        await chain.mine()
        await chain.mine()
        assert (await kit.signer.settle_raw(kit.journal.open()[0]["raw"])).state == "mined"


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
async def test_only_the_diamonds_word_about_our_own_key_mints(
    chain: Chain, tmp_path: Path, before: bool
) -> None:
    class Embroiders(LossyRpc):
        """Adds events to each receipt: one about another owner, one from another contract."""

        async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
            answers = await super().batch(calls)
            for (method, _), answer in zip(calls, answers, strict=True):
                if method == "eth_getTransactionReceipt" and answer and answer["logs"]:
                    (log,) = [item for item in answer["logs"] if item["topics"][0] == abi.REGISTERED]
                    topic, _, owner = log["topics"]
                    other = {**log, "topics": [topic, f"0x{777:064x}", "0x" + "00" * 12 + "ee" * 20]}
                    elsewhere = {
                        **log,
                        "address": "0x" + "ee" * 20,
                        "topics": [topic, f"0x{778:064x}", owner],
                    }
                    place = 0 if before else len(answer["logs"])
                    answer["logs"][place:place] = [other, elsewhere]
            return answers

    async with Embroiders(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc)
        token = await minted(kit, tmp_path, "qa-ab12-329")
        assert kit.signer._judge.scopes["ab12"].minted == {token: "qa-ab12-329"}


async def test_what_is_admitted_is_charged_and_then_judged_again(kit: Kit, tmp_path: Path) -> None:
    kit.signer.open_run(kit.wallet(tmp_path).scope)
    assert await kit.signer.admit_entry("x", run="ab12", charge="reports") == address_of(kit.identity)
    assert kit.purse.spent == ["reports"]

    async def spend(unit: str) -> int:
        kit.dial.word = "stop"
        return 0

    kit.purse.spend = spend  # type: ignore[method-assign]
    with pytest.raises(Refused) as caught:
        await kit.signer.admit_entry("x", run="ab12", charge="reports")
    assert caught.value.rule == "stop"


async def test_unknown_bytes_are_not_settled(kit: Kit) -> None:
    with pytest.raises(ValueError, match="type-2"):
        await kit.signer.settle_raw(b"\x01rest")


async def test_bytes_for_another_chain_are_not_sent(kit: Kit) -> None:
    unsigned = UnsignedTx(chain_id=1, nonce=0, tip=0, max_fee=1, gas=21_000, to=kit.chain.at.diamond)
    settled = await kit.signer.settle_raw(sign(unsigned, fresh()).raw)
    assert (settled.state, settled.reason) == ("failed", "never reached the chain, not sent again")


async def funded(kit: Kit, address: str) -> None:
    await node.fund(kit.chain.rpc, address, ETHER)


def register(kit: Kit, name: str) -> TxRequest:
    data = abi.FUNCTIONS["register"].encode(name)
    return TxRequest(
        role=Role.THROWAWAY,
        to=kit.chain.at.diamond,
        data=data,
        gas=2_200_000,
        charge="writes",
        run="ab12",
        key="a",
    )


async def minted(kit: Kit, folder: Path, name: str) -> int:
    await node.invoke(kit.rpc, kit.chain.at.deployer, kit.chain.at.diamond, "adminResetAll")
    wallet = kit.wallet(folder)
    await funded(kit, wallet.scope.keys.new("a"))  # type: ignore[attr-defined]
    await kit.signer.submit(register(kit, name))
    return await kit.names.id_of_name(name)
