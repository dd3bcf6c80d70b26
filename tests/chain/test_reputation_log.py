"""What only a Reputation registry has: strangers, answers, withdrawals, an agent that is not oneself."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.app.log_copy import CopyPlan, copy_plan
from fleet.chain.keys import address_of
from fleet.chain.log.choice import log_of
from fleet.chain.log.end import LogEnd, log_end
from fleet.chain.log.file_log import FileLog
from fleet.chain.log.kept_events import RegistryEvent
from fleet.chain.log.reputation_log import ReputationLog
from fleet.chain.node import codec, reputation
from fleet.chain.node.provider import NodeProvider
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Role, RunScope
from fleet.chain.signing.tx import parse
from fleet.clock import SystemClock
from fleet.config import Platform
from fleet.config.erc8004 import Erc8004Section
from fleet.devnet import artifact, node
from fleet.devnet.deploy import DEPLOYER, Registries, deploy_registries
from fleet.errors import Refused, RpcError, TxFailed, WrongTarget
from fleet.findings.envelope import Envelope, write
from fleet.findings.records import ItemRecord, write_record
from fleet.severity import Severity
from tests.chain.conftest import Chain, Kit, LossyRpc, make_kit
from tests.doubles.chain_memory import MemoryKeys
from tests.registry import STRANGER, answer, give

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]
FP = "0123456789ab"
AT = "2026-11-27T20:00:00Z"
FINDING = write(
    Envelope(source="qa-ux", sev=Severity.HIGH, surface="ux", fp=FP, title="a page is missing", body="")
)


@dataclass
class Registry:
    """A registry, an agent of the deployer's, and a fleet that posts about it."""

    at: Registries
    kit: Kit
    state: Path

    @property
    def me(self) -> str:
        return address_of(self.kit.identity)

    def platform(self, **changes: Any) -> Platform:
        agent = {"identity": self.at.identity, "agent": self.at.agent, "clients": (self.me,)} | changes
        chain = self.kit.chain.section(diamond="", finality_blocks=4)
        return Platform(
            name="registry",
            log=f"erc8004:{self.at.reputation}",
            chain=chain,
            erc8004=Erc8004Section.model_validate(agent),
        )

    def log(self, **changes: Any) -> ReputationLog:
        found = log_of(self.platform(**changes), self.state, self.kit.rpc, self.kit.signer)
        assert isinstance(found, ReputationLog)
        return found

    async def view(self, signature: str, *args: object, outputs: str) -> tuple[Any, ...]:
        inputs = signature.partition("(")[2].removesuffix(")")
        function = reputation._function(signature.partition("(")[0], inputs, outputs)
        return function.decode(await self.kit.rpc.eth_call(self.at.reputation, function.encode(*args)))

    async def feedback(self, client: str, index: int) -> tuple[Any, ...]:
        """What the registry itself keeps: value, decimals, both tags, whether it is withdrawn."""
        signature, kept = "readFeedback(uint256,address,uint64)", "int128,uint8,string,string,bool"
        return await self.view(signature, self.at.agent, client, index, outputs=kept)


@pytest.fixture
async def registry(chain: Chain, tmp_path: Path) -> AsyncIterator[Registry]:
    async with LossyRpc(chain.rpc.url) as rpc:
        at = await deploy_registries(chain.rpc)
        kit = await make_kit(chain, rpc, log=at.reputation, agent=at.agent, diamond="", deadline_s=2.0)
        yield Registry(at, kit, tmp_path)


def record(kind: str, **fields: Any) -> str:
    made = ItemRecord(kind=kind, item=FP, at=AT, **fields)  # type: ignore[arg-type]  # by the test
    return write_record(made, surface="ux", title="a page is missing")


FIXED = record("verified-fixed", runs=3, who="run-1")
DISMISSED = record("dismiss", reason="as designed", who="ada")


def test_selectors_and_topics_are_those_of_the_standard() -> None:
    """ecosystem.md 1.2, and what solc makes of our own registry."""
    selectors = {one.name: one.selector.hex() for one in reputation.WRITES.values()}
    assert selectors == {
        "giveFeedback": "3c036a7e",
        "revokeFeedback": "4ab3ca99",
        "appendResponse": "c2349ab2",
    }
    assert reputation.IDENTITY_REGISTRY.selector.hex() == "bc4d861b"
    assert reputation.IS_AUTHORISED.selector.hex() == "d95e72be"
    assert reputation.GIVEN == "0x6a4a61743519c9d648a14e6493f47dbe3ff1aa29e7785c96c8326a205e58febc"
    assert reputation.REVOKED == "0x25156fd3288212246d8b008d5921fde376c71ed14ac2e072a506eb06fde6d09d"
    assert reputation.RESPONDED == "0xb1c6be0b5b8aef6539e2fac0fd131a2faa7b49edf8e505b5eb0ad487d56051d4"
    ours = artifact.load("ReputationRegistry").selectors().values()
    assert {one.selector for one in (*reputation.WRITES.values(), reputation.IDENTITY_REGISTRY)} <= set(ours)


async def test_a_finding_is_feedback_with_its_severity_and_fingerprint(registry: Registry) -> None:
    posted = await registry.log().post(FINDING)
    assert posted.index == 0
    assert await registry.feedback(registry.me, 1) == (-75, 0, "qaFinding", FP, False)


async def test_a_stranger_s_flood_moves_nothing(registry: Registry) -> None:
    """Neither feedback of another nor an answer of another to an entry of ours; ours keep their places."""
    log = registry.log()
    await give(registry.kit.chain.rpc, registry.at, STRANGER, FINDING)
    await log.post("first")
    for number in range(20):
        await give(registry.kit.chain.rpc, registry.at, STRANGER, f"flood {number}")
    await answer(registry.kit.chain.rpc, registry.at, STRANGER, registry.me, 1, FIXED)
    assert (await log.post("second")).index == 1
    for reader in (log, registry.log()):
        assert [entry.text for entry in await reader.range(0, 99)] == ["first", "second"]
        assert await reader.count() == 2


async def test_what_fixes_a_finding_is_an_answer_to_it(registry: Registry) -> None:
    log = registry.log()
    await log.post_many([FINDING, "between"])
    assert (await log.post(FIXED)).index == 2
    assert [entry.text for entry in await registry.log().range(0, 9)] == [FINDING, "between", FIXED]
    inputs = "getLastIndex(uint256,address)"
    assert await registry.view(inputs, registry.at.agent, registry.me, outputs="uint64") == (2,)


async def test_a_record_without_its_finding_is_feedback_of_its_own(registry: Registry) -> None:
    assert (await registry.log().post(FIXED)).index == 0
    assert await registry.feedback(registry.me, 1) == (0, 0, "qaRecord", FP, False)


async def test_a_dismissal_withdraws_the_finding_once_and_keeps_the_entry(registry: Registry) -> None:
    log = registry.log()
    await log.post(FINDING)
    assert (await log.post(DISMISSED)).index == 1
    assert (await registry.feedback(registry.me, 1))[4] is True
    again = record("dismiss", reason="really", who="ada")
    assert (await registry.log().post(again)).index == 2
    assert [entry.text for entry in await log.range(0, 9)] == [FINDING, DISMISSED, again]
    assert [one["purpose"] for one in registry.kit.journal.intents.values()].count("withdraw") == 1


async def test_a_dismissal_for_a_time_withdraws_nothing(registry: Registry) -> None:
    log = registry.log()
    await log.post_many([FINDING])
    await log.post(record("dismiss", reason="later", who="ada", until=AT))
    assert (await registry.feedback(registry.me, 1))[4] is False


async def test_the_owner_of_the_agent_does_not_post(registry: Registry) -> None:
    """The registry would refuse it; it is refused before anything is signed."""
    approve = artifact.load("IdentityRegistry").selectors()["setApprovalForAll(address,bool)"]
    arguments = codec.encode(["address", "bool"], [registry.me, True])
    await node.transact(registry.kit.chain.rpc, DEPLOYER, registry.at.identity, approve + arguments)
    with pytest.raises(Refused, match="takes no feedback about oneself") as caught:
        await registry.log().post("mine")
    assert (caught.value.rule, registry.kit.journal.intents) == ("agent", {})


async def test_an_identity_that_no_reader_trusts_does_not_post(registry: Registry) -> None:
    with pytest.raises(Refused, match="are not read by this profile") as caught:
        await registry.log(clients=(STRANGER,)).post("unread")
    assert "clients" in caught.value.remedy


async def test_an_entry_whose_hash_is_another_is_not_read(registry: Registry) -> None:
    uri, _ = reputation.uri_of("forged", {})
    data = reputation.GIVE.encode(registry.at.agent, 0, 0, reputation.FINDING, "", "", uri, b"\x01" * 32)
    await node.transact(registry.kit.chain.rpc, STRANGER, registry.at.reputation, data)
    await give(registry.kit.chain.rpc, registry.at, STRANGER, "sound")
    assert [one.text for one in await registry.log(clients=(registry.me, STRANGER)).range(0, 9)] == ["sound"]


async def test_a_node_that_takes_few_blocks_is_asked_for_few(registry: Registry) -> None:
    class Narrow(NodeProvider):
        async def make_batch_request(self, requests: Any) -> Any:
            for method, params in requests:
                asked = params[0] if method == "eth_getLogs" else {}
                if asked and int(asked["toBlock"], 16) - int(asked["fromBlock"], 16) >= 3:
                    raise RpcError("query exceeds the range of 3 blocks", code=-32005)
            return await super().make_batch_request(requests)

    texts = [f"entry {number}" for number in range(5)]
    for text in texts:
        await registry.log().post(text)
    async with Rpc(registry.kit.rpc.url) as rpc:
        rpc.w3.provider = Narrow(rpc.url, timeout_s=10, max_bytes=32 << 20)
        head = await rpc.head()
        log = log_of(registry.platform(from_block=head - 30), registry.state, rpc)
        assert [entry.text for entry in await log.range(0, 9)] == texts


async def test_what_a_reorganisation_drops_is_gone_and_what_comes_is_read(registry: Registry) -> None:
    log = registry.log()
    await log.post("stays")
    for _ in range(5):
        await registry.kit.rpc.call("evm_mine")
    await log.post("dropped")
    await registry.kit.rpc.call("anvil_reorg", [2, []])
    assert [entry.text for entry in await log.range(0, 9)] == ["stays"]
    assert (await log.post("after")).index == 1


async def test_what_is_final_is_read_once_for_all_processes_and_anew_on_another_chain(
    registry: Registry,
) -> None:
    log, kit = registry.log(), registry.kit
    await log.post("first")
    for _ in range(6):
        await kit.rpc.call("evm_mine")
    await log.range(0, 9)
    asked: list[int] = []

    class Counted(ReputationLog):
        async def _between(self, start: int, end: int) -> list[RegistryEvent]:
            asked.append(start)
            return await super()._between(start, end)

    async def read_again(**changes: Any) -> list[str]:
        reader = registry.log(**changes)
        reader.__class__ = Counted
        return [entry.text for entry in await reader.range(0, 9)]

    await kit.rpc.call("evm_mine")
    assert (await read_again(), asked) == (["first"], [await kit.rpc.head() - 4])  # what is not final, again
    asked.clear()
    (path,) = registry.state.glob("logs/*.events.json")
    whole = path.read_text()
    for text in (whole.replace('"first"', "1"), whole[:-9], re.sub(r'"hash":"0x..', '"hash":"0x00', whole)):
        path.write_text(text.replace('"text":"first"', '"text":"forged"'))
        assert await read_again() == ["first"]
    assert (await read_again(clients=(STRANGER,)), asked) == ([], [0, 0, 0, 0])


async def test_a_withdrawal_that_a_reorganisation_drops_is_made_again(registry: Registry) -> None:
    log, rpc = registry.log(), registry.kit.rpc
    for turn in range(8):  # until its entry and its withdrawal are in two blocks: one goes as a whole
        name = FP[turn:] + FP[:turn]
        await log.post(FINDING.replace(FP, name))
        await log.post(DISMISSED.replace(FP, name))
        if await rpc.call("eth_getBlockTransactionCountByNumber", ["latest"]) == "0x1":
            break
    index = 2 * turn + 1
    assert await log.withdraw_again() == 0
    await rpc.call("anvil_reorg", [1, []])
    assert (await registry.feedback(registry.me, index))[4] is False
    assert await registry.log().withdraw_again() == 1
    assert (await registry.feedback(registry.me, index))[4] is True
    other = FINDING.replace(FP, FP[::-1])
    await log.post_many([other, DISMISSED.replace(FP, FP[::-1]), other])  # reported once more: it stands
    assert await registry.log().withdraw_again() == 0


async def test_an_entry_on_its_way_is_replaced_and_never_joined(registry: Registry) -> None:
    """The file in the URI has its time in it: the same text has other bytes a second later."""
    kit, log = registry.kit, registry.log()
    kit.signer.open_run(RunScope(run="ab12", prefix="qa-ab12-", keys=MemoryKeys(), payer=kit.purse))
    await kit.chain.mining(False)
    try:
        with pytest.raises(TxFailed, match="in no block yet"):
            await log.post("once", run="ab12")
        await kit.journal.tx_done(1, "failed", {"reason": "given up"})
        later = registry.log()
        later._clock = Later()
        with pytest.raises((TxFailed, RpcError)):
            await later.post("once", run="ab12")
    finally:
        await kit.chain.mining(True)
        await kit.chain.mine()
    sent = [parse(one["raw"])[0] for one in kit.journal.intents.values()]
    assert ({one.nonce for one in sent}, len({one.data for one in sent})) == ({0}, 2)
    assert [entry.text for entry in await log.range(0, 9)] == ["once"]


async def test_bytes_that_were_lost_after_the_signature_are_settled_once(registry: Registry) -> None:
    """As after a kill: the journal has the intent, and nothing else is known."""
    kit, log = registry.kit, registry.log()
    kit.rpc.mute = 99  # type: ignore[attr-defined]  # a LossyRpc
    with pytest.raises(Exception, match="lost on the way back"):
        await log.post(FINDING)
    kit.rpc.mute = 0  # type: ignore[attr-defined]
    raws = [one["raw"] for one in kit.journal.intents.values()]
    assert [one.state for one in await kit.signer.settle_all(raws)] == ["mined"]
    assert [one.state for one in await kit.signer.settle_all(raws)] == ["mined"]
    assert await log.find(FINDING, registry.me) == 0
    assert [entry.text for entry in await registry.log().range(0, 9)] == [FINDING]


async def test_where_the_log_ends_is_counted(registry: Registry) -> None:
    assert await log_end(registry.platform(), registry.state) == LogEnd()
    await registry.log().post_many(["one", "two"])
    end = await log_end(registry.platform(), registry.state)
    last = (await registry.log().range(1, 1))[0]
    assert end == LogEnd(2, last.timestamp)


async def test_a_registry_of_another_identity_registry_is_not_the_target(registry: Registry) -> None:
    await registry.kit.rpc.check_target(registry.platform())
    with pytest.raises(WrongTarget, match=r"erc8004\.identity") as caught:
        await registry.kit.rpc.check_target(registry.platform(identity=STRANGER))
    assert "erc8004.identity" in caught.value.remedy
    other = replace(registry, at=replace(registry.at, reputation=registry.at.identity))
    with pytest.raises(WrongTarget, match=r"has no getIdentityRegistry\(\): log of profile 'registry'"):
        await registry.kit.rpc.check_target(other.platform())


async def test_a_history_is_copied_from_a_file_once_and_as_the_registry_has_it(
    registry: Registry, tmp_path: Path
) -> None:
    texts = [FINDING, "a note", FIXED, "a note"]
    source, log = FileLog(tmp_path / "own.jsonl", registry.kit.signer), registry.log()
    await source.post_many(texts)
    for number in (2, 9):  # cut off after two, and again to the end
        plan = await copy_plan(source, log, ours={registry.me}, author=registry.me)
        for text in plan.texts[:number]:
            await log.post(text)
    assert [entry.text for entry in await log.range(0, 9)] == texts
    assert await copy_plan(source, log, ours={registry.me}, author=registry.me) == CopyPlan((), 4, 0)
    assert (await registry.feedback(registry.me, 3))[2] == "qaFinding"  # the fix is an answer to the first


@pytest.mark.parametrize(
    ("rule", "data"),
    [
        ("agent", reputation.GIVE.encode(9, 0, 0, "", "", "", *reputation.uri_of("x", {}))),
        ("agent", reputation.RESPOND.encode(0, STRANGER, 1, *reputation.uri_of("x", {}))),
        ("agent", reputation.REVOKE.encode(9, 1)),
        ("text", reputation.GIVE.encode(0, 0, 0, "", "", "", "https://example.org/", b"\x01" * 32)),
        ("text", reputation.GIVE.encode(0, 0, 0, "", "", "", reputation.uri_of("x", {})[0], b"\x01" * 32)),
        ("selector", bytes.fromhex("0af28bd3") + b"\0" * 96),  # setAgentURI
        ("selector", bytes.fromhex("4f1ef286") + b"\0" * 96),  # upgradeToAndCall
    ],
)
async def test_the_signer_decodes_what_it_signs_for_a_registry(
    registry: Registry, rule: str, data: bytes
) -> None:
    request = replace(registry.log().request("x"), data=data)
    assert request.role is Role.IDENTITY
    with pytest.raises(Refused) as caught:
        await registry.kit.signer.submit(request)
    assert (caught.value.rule, registry.kit.journal.intents) == (rule, {})


class Later(SystemClock):
    """A clock that is a day ahead."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=1)
