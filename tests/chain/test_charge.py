"""Who pays: what a request says, what its role may say, and what the run's budget is asked; both signers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import randbelow

import pytest

from fleet.chain.node import abi
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Charge, FeedbackPort, Role, RunScope, SignerPort, TxRequest
from fleet.chain.run_keys import RunKeys
from fleet.chain.signing.judge import PAYS, SigningLimits, check_charge
from fleet.chain.signing.sponsor import Stipends
from fleet.errors import BudgetExceeded, Refused
from tests.chain.conftest import Chain, Dial, Purse, make_kit
from tests.doubles.chain import DIAMOND, MemoryChain, MemorySponsor

pytestmark = pytest.mark.anyio
RUN, LABEL = "ab12", "a"
GAS = 2_200_000


@dataclass
class Till:
    """One open run with a key of its own, and its budget."""

    signer: SignerPort
    sponsor: Stipends | MemorySponsor
    log: FeedbackPort
    scope: RunScope
    purse: Purse
    diamond: str

    def register(self, charge: Charge = "writes") -> TxRequest:
        name = f"qa-{RUN}-{1000 + randbelow(9000)}"  # others use this chain too, and keep their names
        data = abi.FUNCTIONS["register"].encode(name)
        return TxRequest(
            role=Role.THROWAWAY, to=self.diamond, gas=GAS, charge=charge, data=data, run=RUN, key=LABEL
        )

    async def refused(self, request: TxRequest) -> str:
        with pytest.raises(Refused) as caught:
            await self.signer.submit(request)
        return caught.value.rule


@pytest.fixture(params=["memory", "anvil"])
async def till(request: pytest.FixtureRequest, chain: Chain, tmp_path: Path) -> AsyncIterator[Till]:
    keys, purse = RunKeys(tmp_path), Purse()
    keys.new(LABEL)
    scope = RunScope(run=RUN, prefix=f"qa-{RUN}-", keys=keys, payer=purse)
    if request.param == "memory":
        memory = MemoryChain(SigningLimits(rung=Dial()))
        memory.signer.open_run(scope)
        yield Till(memory.signer, memory.sponsor, memory.log, scope, purse, DIAMOND)
        return
    snapshot = await chain.rpc.call("evm_snapshot")
    async with Rpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc)
        kit.signer.open_run(scope)
        yield Till(kit.signer, Stipends(rpc, kit.signer), kit.log, scope, purse, chain.at.diamond)
    assert await chain.rpc.call("evm_revert", [snapshot])


async def test_a_tool_s_write_is_charged_and_what_pays_for_it_or_gives_back_is_not(till: Till) -> None:
    fee = await till.sponsor.fund(till.scope, LABEL, gas=GAS)
    assert till.purse.spent == []
    await till.signer.submit(replace(till.register(), max_fee=fee))
    assert till.purse.spent == ["writes"]
    await till.sponsor.sweep(till.scope, LABEL)
    assert till.purse.spent == ["writes"]


async def test_an_act_of_a_throwaway_key_is_never_free(till: Till) -> None:
    """Also when it calls itself clean-up."""
    await till.sponsor.fund(till.scope, LABEL, gas=GAS)
    assert await till.refused(till.register("none")) == "charge"
    assert await till.refused(replace(till.register("none"), cleanup=True)) == "charge"
    with pytest.raises(Refused, match="charged to writes, not to none"):
        await till.signer.check(till.register("none"))


async def test_a_report_is_charged_to_what_who_posts_it_says(till: Till) -> None:
    for charge in ("reports", "closing", "none"):
        await till.log.post(charge, run=RUN, charge=charge)
    await till.log.post("by default", run=RUN)
    await till.log.post("outside a run")
    assert till.purse.spent == ["reports", "closing", "reports"]


async def test_what_is_spent_is_not_signed(till: Till) -> None:
    till.purse.left, before = 1, await till.log.count()
    await till.log.post("the last", run=RUN)
    with pytest.raises(BudgetExceeded):
        await till.log.post("one too many", run=RUN)
    assert await till.log.count() == before + 1


async def test_a_run_without_a_budget_pays_for_nothing(till: Till) -> None:
    till.scope.payer = None
    with pytest.raises(Refused) as caught:
        await till.log.post("who pays?", run=RUN)
    assert caught.value.rule == "charge"
    await till.sponsor.fund(till.scope, LABEL, gas=GAS)
    assert await till.refused(till.register()) == "charge"


def test_every_role_has_its_payers() -> None:
    assert PAYS.keys() == set(Role)
    free = {role for role in Role if "none" in PAYS[role]}
    assert free == {Role.IDENTITY, Role.SPONSOR, Role.OPERATOR}
    with pytest.raises(Refused, match="charged to none, not to writes"):
        check_charge(Role.SPONSOR, "writes")
