"""One suite for the chain's ports: the double must behave as the contracts on a real node do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.node import abi
from fleet.chain.node.digest import metadata_key
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import (
    FeedbackPort,
    NamesPort,
    RunScope,
    SignerPort,
    SponsorPort,
)
from fleet.chain.signing.judge import SigningLimits
from fleet.chain.signing.sponsor import SponsoredKeys, Stipends
from fleet.clock import SystemClock
from fleet.config import GasSection
from fleet.errors import Refused, TxFailed
from tests.chain.conftest import Chain, Dial, Purse, TempoChain, make_kit
from tests.chain.hands import RunWallet
from tests.doubles.chain import DIAMOND, MemoryChain, MemorySponsor
from tests.doubles.chain_memory import MemoryJournal, MemoryKeys

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

REGISTER, PUBLISH = abi.FUNCTIONS["register"], abi.FUNCTIONS["setMetadata"]
KEY = metadata_key("localharness.public_face")


@dataclass
class Side:
    """One implementation of all ports."""

    log: FeedbackPort
    names: NamesPort
    signer: SignerPort
    sponsor: SponsorPort
    journal: MemoryJournal
    dial: Dial
    diamond: str

    def wallet(self, run: str = "ab12", keys: Any = None) -> RunWallet:
        return RunWallet(
            RunScope(run=run, prefix=f"qa-{run}-", keys=keys or MemoryKeys(), payer=Purse()),
            self.signer,
            self.sponsor,
            self.names,
            diamond=self.diamond,
            gas=GasSection(),
            auth_scope="localharness-proxy",
            clock=SystemClock(),
        )


@pytest.fixture(params=["memory", "anvil", "sponsored", "tempo"])
async def side(request: pytest.FixtureRequest, chain: Chain, tempo: TempoChain) -> AsyncIterator[Side]:
    dial = Dial()
    if request.param == "memory":
        memory = MemoryChain(SigningLimits(rung=dial))
        yield Side(memory.log, memory.names, memory.signer, memory.sponsor, memory.journal, dial, DIAMOND)
        return
    chain = tempo if request.param == "tempo" else chain
    snapshot = await chain.rpc.call("evm_snapshot")
    await chain.clear()
    async with Rpc(chain.rpc.url) as rpc:
        may_sponsor = request.param != "anvil"
        kit = await make_kit(chain, rpc, may_sponsor=may_sponsor)
        sponsor = (SponsoredKeys if may_sponsor else Stipends)(rpc, kit.signer)
        yield Side(kit.log, kit.names, kit.signer, sponsor, kit.journal, kit.dial, chain.at.diamond)
    assert await chain.rpc.call("evm_revert", [snapshot])


async def mint(wallet: RunWallet, name: str, label: str = "a") -> dict[str, Any]:
    if label not in wallet.scope.keys.addresses():
        wallet.scope.keys.new(label)  # type: ignore[attr-defined]
    return await wallet.submit(label, wallet._diamond, REGISTER.encode(name), 0, 2_200_000)


async def test_an_entry_is_journalled_and_what_no_log_takes_is_not(side: Side) -> None:
    """The log's own suite is test_log_conformance.py."""
    with pytest.raises(Refused):
        await side.log.post_many(["fine", "x" * 2049])
    assert side.journal.intents == {}
    for text in ("one", "two — ü", "one"):
        await side.log.post(text)
    assert [status for status, _ in side.journal.ends.values()] == ["done"] * 3


async def test_name_lives_and_is_given_back(side: Side) -> None:
    wallet = side.wallet()
    address = wallet.scope.keys.new("a")  # type: ignore[attr-defined]
    answer = await mint(wallet, "qa-ab12-1")
    assert (answer["status"], answer["reverted"]) == (1, "")
    token = await side.names.id_of_name("qa-ab12-1")
    assert wallet.scope.minted == {token: "qa-ab12-1"}
    assert await side.names.owner_of_name("qa-ab12-1") == address
    assert await side.names.name_of_id(token) == "qa-ab12-1"
    assert await side.names.next_id() == token + 1
    assert await wallet.release(token) is not None
    assert await wallet.release(token) is None
    assert await side.names.owner_of_name("qa-ab12-1") == "" == await side.names.name_of_id(token)
    assert await side.names.id_of_name("qa-ab12-1") == 0
    assert wallet.scope.minted == {}


async def test_taken_name_is_an_answer_with_its_reason(side: Side) -> None:
    wallet = side.wallet()
    await mint(wallet, "qa-ab12-1")
    answer = await mint(wallet, "qa-ab12-1", label="b")
    assert (answer["status"], answer["reverted"], answer["error_class"]) == (0, "name taken", "reverted")


async def test_metadata_only_of_minted_ids(side: Side) -> None:
    wallet = side.wallet()
    await mint(wallet, "qa-ab12-1")
    (token,) = wallet.scope.minted
    answer = await wallet.submit("a", side.diamond, PUBLISH.encode(token, KEY, b"app"), 0, 1_200_000)
    assert answer["status"] == 1
    with pytest.raises(Refused) as caught:
        await wallet.submit("a", side.diamond, PUBLISH.encode(token + 1, KEY, b"app"), 0, 1_200_000)
    assert caught.value.rule == "minted"


async def test_refused_calls_are_not_paid_for(side: Side) -> None:
    wallet = side.wallet()
    wallet.scope.keys.new("a")  # type: ignore[attr-defined]
    for payload in (b"\xde\xad\xbe\xef", REGISTER.encode("claude"), abi.FUNCTIONS["clearFeedback"].encode()):
        with pytest.raises(Refused):
            await wallet.submit("a", side.diamond, payload, 0, 2_000_000)
    with pytest.raises(Refused):
        await wallet.submit("nobody", side.diamond, REGISTER.encode("qa-ab12-1"), 0, 2_200_000)
    assert wallet.scope.stipend_wei == 0
    assert side.journal.intents == {}


async def test_clean_up_works_at_observe_and_leaves_nothing(side: Side) -> None:
    wallet = side.wallet()
    await mint(wallet, "qa-ab12-1")
    await mint(wallet, "qa-ab12-2", label="b")
    side.dial.word = "observe"
    with pytest.raises(Refused) as caught:
        await mint(wallet, "qa-ab12-3")
    assert caught.value.rule == "dial"
    for token in list(wallet.scope.minted):
        await wallet.release(token)
    swept = await wallet.sweep()
    assert (swept > 0) is not isinstance(side.sponsor, SponsoredKeys)
    assert await wallet.sweep() == 0


async def test_owners_of_many_names_come_in_their_order(side: Side) -> None:
    mine, other = side.wallet("ab12"), side.wallet("cd34")
    await mint(mine, "qa-ab12-1")
    await mint(other, "qa-cd34-1")
    (my,), (its,) = mine.scope.keys.addresses().values(), other.scope.keys.addresses().values()
    asked = ["qa-cd34-1", "qa-free-1", "qa-ab12-1", "qa-cd34-1"]
    assert await side.names.owners_of_names(asked) == [its, "", my, its]
    assert await side.names.owners_of_names([]) == []
    assert await side.names.owners_of_names(["qa-free-1"] * 450) == [""] * 450


async def test_heir_of_a_killed_run_releases_its_names(side: Side) -> None:
    wallet = side.wallet()
    await mint(wallet, "qa-ab12-1")
    heir = side.wallet(keys=wallet.scope.keys)
    with pytest.raises(Refused):
        await heir.release(next(iter(wallet.scope.minted)))
    found = await heir.recover_minted(["qa-ab12-1", "qa-ab12-9"])
    assert found == wallet.scope.minted
    for token in found:
        await heir.release(token)
    assert await side.names.id_of_name("qa-ab12-1") == 0


async def test_stipend_has_an_end_and_a_reserve_for_clean_up(side: Side) -> None:
    wallet = side.wallet()
    await mint(wallet, "qa-ab12-1")
    wallet.scope.stipend_wei = 10**18
    wallet.scope.keys.new("b")  # type: ignore[attr-defined]
    with pytest.raises(Refused) as caught:
        await mint(wallet, "qa-ab12-2", label="b")
    assert caught.value.rule == "stipend"
    wallet.scope.stipend_wei = 8 * 10**17
    if isinstance(side.sponsor, SponsoredKeys):
        with pytest.raises(Refused):
            await mint(wallet, "qa-ab12-2", label="b")
        (token,) = wallet.scope.minted
        assert await wallet.release(token) is not None
        return
    assert isinstance(side.sponsor, Stipends | MemorySponsor)
    with pytest.raises(Refused):
        await side.sponsor.fund(wallet.scope, "b", gas=21_000)
    assert await side.sponsor.fund(wallet.scope, "b", gas=21_000, cleanup=True) > 0


async def test_a_stipend_for_a_transaction_that_is_signed_already_goes_by_its_own_fee(side: Side) -> None:
    wallet = side.wallet()
    address = wallet.scope.keys.new("a")  # type: ignore[attr-defined]
    if isinstance(side.sponsor, SponsoredKeys):
        return  # nothing is paid to a key
    assert isinstance(side.sponsor, Stipends | MemorySponsor)
    fee = 3 * await side.signer.max_fee()
    assert await side.sponsor.fund(wallet.scope, "a", gas=50_000, fee=fee, cleanup=True) == fee
    assert wallet.scope.stipend_wei == 50_000 * fee
    assert await side.sponsor.fund(wallet.scope, "a", gas=50_000, fee=fee, cleanup=True) == fee
    assert wallet.scope.stipend_wei == 50_000 * fee, f"{address} had it already"


async def test_token_names_the_key_of_its_label(side: Side) -> None:
    wallet = side.wallet()
    address = wallet.scope.keys.new("caller")  # type: ignore[attr-defined]
    answer = await wallet.token("caller", "")
    assert answer["address"] == address == answer["token"].split(":")[0]
    with pytest.raises(Refused):
        await wallet.token("identity", "")


async def test_failed_transaction_raises_when_checked(side: Side, tmp_path: Path) -> None:
    wallet = side.wallet()
    await mint(wallet, "qa-ab12-1")
    (token,) = wallet.scope.minted
    await wallet.release(token)
    wallet.scope.minted[token] = "qa-ab12-1"
    request = abi.FUNCTIONS["releaseName"].encode(token)
    with pytest.raises(TxFailed) as caught:
        await wallet._clean("a", request, 1_000_000)
    assert caught.value.kind == "reverted"
    assert "NotOwner" in str(caught.value)
