"""One anvil with the contracts for the room; every test brings fresh keys, so tests do not meet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.keys import Secret, address_of, fresh
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.names import Names
from fleet.chain.node import abi
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Charge, Paid, Role, RunScope, TxRequest
from fleet.chain.run_keys import RunKeys
from fleet.chain.signing.judge import SigningLimits
from fleet.chain.signing.signer import Keys, Signer
from fleet.chain.signing.sponsor import Stipends
from fleet.clock import SystemClock
from fleet.config import ChainSection, GasSection
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import Deployment, deploy
from fleet.errors import BudgetExceeded
from tests.chain.hands import RunWallet
from tests.doubles.chain_memory import MemoryJournal
from tests.tempo import TempoAnvil, fund

ETHER = 10**18
GAS = GasSection()


@dataclass
class Dial:
    """A dial that a test turns."""

    word: str = "exercise"

    def __call__(self) -> str:
        return self.word


@dataclass
class Purse:
    """A run's budget: what is `left` of everything together, and what was charged to which unit."""

    left: int = 1000
    spent: list[str] = field(default_factory=list)

    async def spend(self, unit: Paid, /) -> int:
        if not self.left:
            raise BudgetExceeded(f"no {unit} left")
        self.left -= 1
        self.spent.append(unit)
        return self.left


@dataclass
class Chain:
    """A running node with the platform on it."""

    rpc: Rpc
    at: Deployment

    async def fund(self, key: Secret, amount: int) -> None:
        await node.fund(self.rpc, address_of(key), amount)

    async def clear(self) -> None:
        await node.invoke(self.rpc, self.at.deployer, self.at.diamond, "clearFeedback")

    async def mining(self, on: bool) -> None:
        await self.rpc.call("evm_setAutomine", [on])

    async def mine(self) -> None:
        await self.rpc.call("evm_mine")

    def section(self, **changes: Any) -> ChainSection:
        values = {"rpc": self.rpc.url, "id": self.at.chain_id, "diamond": self.at.diamond}
        return ChainSection.model_validate(values | changes)


@dataclass
class Kit:
    """A signer with fresh standing keys and what a test looks at."""

    chain: Chain
    rpc: Rpc
    signer: Signer
    identity: Secret
    sponsor_key: Secret
    dial: Dial = field(default_factory=Dial)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    purse: Purse = field(default_factory=Purse)

    @property
    def log(self) -> FeedbackLog:
        return FeedbackLog(self.rpc, self.chain.at.diamond, GAS, self.signer)

    @property
    def names(self) -> Names:
        return Names(self.rpc, self.chain.at.diamond)

    def wallet(self, folder: Path, run: str = "ab12") -> RunWallet:
        scope = RunScope(run=run, prefix=f"qa-{run}-", keys=RunKeys(folder), payer=self.purse)
        return RunWallet(
            scope,
            self.signer,
            Stipends(self.rpc, self.signer),
            self.names,
            diamond=self.chain.at.diamond,
            gas=GAS,
            auth_scope="localharness-proxy",
            clock=SystemClock(),
        )

    def post(self, text: str, *, gas: int = 5_000_000, run: str = "", charge: Charge = "none") -> TxRequest:
        data = abi.FUNCTIONS["submitFeedback"].encode(text)
        to = self.chain.at.diamond
        return TxRequest(role=Role.IDENTITY, to=to, data=data, gas=gas, run=run, charge=charge)


class LossyRpc(Rpc):
    """A real node behind a wire that loses things, at the port and not inside the client.

    `drop` counts broadcasts that never arrive, `mute` those that arrive but whose answer is lost.
    """

    drop = 0
    mute = 0

    async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        sending = bool(calls) and calls[0][0] == "eth_sendRawTransaction"
        if sending and self.drop:
            self.drop -= 1
            self.w3.provider.refuse("lost on the way there")
        answers = await super().batch(calls)
        if sending and self.mute:
            self.mute -= 1
            self.w3.provider.refuse("lost on the way back")
        return answers


@pytest.fixture(scope="session")
async def chain(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chain]:
    state = tmp_path_factory.mktemp("chain") / "chain.json"
    async with Anvil(state) as anvil, Rpc(anvil.url) as rpc:
        yield Chain(rpc, await deploy(rpc))


class TempoChain(Chain):
    """A chain whose fees are paid in a token."""

    async def fund(self, key: Secret, amount: int) -> None:
        await fund(self.rpc, address_of(key), amount)


@pytest.fixture(scope="session")
async def tempo(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TempoChain]:
    state = tmp_path_factory.mktemp("tempo") / "chain.json"
    async with TempoAnvil(state) as anvil, Rpc(anvil.url) as rpc:
        yield TempoChain(rpc, await deploy(rpc))


@pytest.fixture
async def kit(chain: Chain) -> AsyncIterator[Kit]:
    async with LossyRpc(chain.rpc.url) as rpc:
        yield await make_kit(chain, rpc)


async def make_kit(
    chain: Chain,
    rpc: Rpc,
    *,
    never: Container[bytes] = frozenset(),
    wealth: int = 100 * ETHER,
    stipend_wei: int = ETHER,
    deadline_s: float = 5.0,
    log: str | None = None,
    agent: int | None = None,
    may_sponsor: bool = False,
    **section: Any,
) -> Kit:
    identity, sponsor, dial, journal = fresh(), fresh(), Dial(), MemoryJournal()
    for key in (identity, sponsor):
        await chain.fund(key, wealth)
    signer = Signer(
        rpc,
        chain.section(**section),
        journal,
        keys=Keys(identity=identity, sponsor=sponsor),
        fences=SigningLimits(
            rung=dial, never=never, stipend_wei=stipend_wei, log=log, agent=agent, may_sponsor=may_sponsor
        ),
        deadline_s=deadline_s,
    )
    return Kit(chain, rpc, signer, identity, sponsor, dial, journal)
