"""What is paid for as the fleet sees it, without jails: the guest's tool, a real broker, signer, token and
chain."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from fleet.broker.broker import Broker, EgressPolicy
from fleet.chain.keys import Secret, address_of, fresh
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import PaymentQuote, PaymentRequest, RunScope
from fleet.chain.signing.judge import SigningLimits
from fleet.chain.signing.payment import carried
from fleet.chain.signing.signer import Keys, Signer
from fleet.config import Platform
from fleet.devnet import artifact, node
from fleet.devnet.anvil import CHAIN_ID, Anvil
from fleet.devnet.deploy import DEPLOYER
from fleet.devnet.surfaces.tollhouse import MESSAGE, NETWORK, PAGE, TOOL, Tollhouse
from fleet.drivers.explore.agent.payments import make
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import Explorer, ExplorerContext
from fleet.oracles.model import Exchange, Facts, Violation
from fleet.oracles.table import judge
from fleet.runs.call.guest_protocol import json_safe
from fleet.runs.context import guest_context
from sandbox.errors import Failure
from sandbox.spec import Mistake, as_record
from sandbox.tools import TOOLS
from sandbox.validate import build
from tests.chain.conftest import Purse
from tests.doubles.chain_memory import MemoryJournal, MemoryKeys
from tests.sandbox.doubles import Signer as Door
from tests.sandbox.doubles import listener

PAYEE = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"
HOLDS = 500_000
RUN = "t0"


@dataclass(frozen=True)
class Mint:
    """A local chain with the token, and a purse that holds HOLDS units of it."""

    portal: BlockingPortal
    rpc: Rpc
    token: str
    purse: Secret

    def held(self, address: str) -> int:
        data = "0x70a08231" + address[2:].rjust(64, "0")
        asked = {"to": self.token, "data": data}
        return int(self.portal.call(self.rpc.call, "eth_call", [asked, "latest"]), 16)

    def give(self, address: str, units: int) -> None:
        self.portal.call(node.invoke, self.rpc, DEPLOYER, self.token, "transfer", address, units)


@contextmanager
def minted(folder: Path) -> Iterator[Mint]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Anvil(folder / "chain.json")) as anvil,
        portal.wrap_async_context_manager(Rpc(anvil.url)) as rpc,
    ):
        token = portal.call(node.create, rpc, DEPLOYER, artifact.load("PayToken").code)
        mint = Mint(portal, rpc, token, fresh())
        mint.give(address_of(mint.purse), HOLDS)
        yield mint


def profile(site: str, mint: Mint, house: Tollhouse, **payments: object) -> Platform:
    wires = {one.wire for one in house.sold}
    prices = {f"{{site}}{one.path}": one.price for one in house.sold if one.wire == PAGE}
    paths = [
        *prices,
        *(["{site}/mcp"] if TOOL in wires else []),
        *(["{site}/a2a"] if MESSAGE in wires else []),
    ]
    more: dict[str, object] = {"mcp": {"endpoints": ["{site}/mcp"]}} if TOOL in wires else {}
    more |= {"agents": {"tolls": {"wire": "a2a-0.3", "url": "{site}/a2a"}}} if MESSAGE in wires else {}
    limits: dict[str, object] = {"most": 2_000, "per_run": HOLDS, "holds": HOLDS, "payee": PAYEE}
    token = {"network": NETWORK, "asset": mint.token, "name": "Devnet Dollar", "version": "1", "decimals": 6}
    return Platform.model_validate(
        {
            "name": "toll",
            "log": "file",
            "chain": {"rpc": mint.rpc.url, "id": CHAIN_ID},
            "web": {"site": site, "act_paths": paths},
            "payments": {"resources": paths, "prices": prices} | token | limits | payments,
        }
        | more
    )


@dataclass
class PurseDoor(Door):
    """The broker's way to a real signer."""

    signer: Signer
    mint: Mint
    budget: Purse = field(default_factory=lambda: Purse(10_000))
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    word: str = "exercise"

    def __post_init__(self) -> None:
        super().__init__()

    async def pay(self, quote: PaymentQuote, value: int, seconds: int, *, own: bool) -> dict[str, Any]:
        asked = PaymentRequest(run=RUN, quote=quote, value=value, seconds=seconds, own=own)
        return carried(*await self.signer.pay(asked))


def door(platform: Platform, mint: Mint, **facts: Any) -> PurseDoor:
    journal = MemoryJournal()
    made = PurseDoor.__new__(PurseDoor)
    limits = SigningLimits(rung=lambda: made.word, payments=platform.payments, **facts)
    signer = Signer(mint.rpc, platform.chain, journal, keys=Keys(purse=mint.purse), fences=limits)
    PurseDoor.__init__(made, signer, mint, journal=journal)
    signer.open_run(RunScope(run=RUN, prefix=f"qa-{RUN}-", keys=MemoryKeys(), payer=made.budget))
    return made


@contextmanager
def way_out(platform: Platform, at: PurseDoor) -> Iterator[None]:
    """A broker of this platform; QA_BROKER leads to it."""
    policy = replace(EgressPolicy.of(platform).for_calls(10_000), rung=lambda: at.word, pace=None)
    sock = listener()
    before = os.environ.get("QA_BROKER")
    with at.mint.portal.wrap_async_context_manager(Broker(policy, at).egress(sock)):
        os.environ["QA_BROKER"] = "http://{}:{}".format(*sock.getsockname())
        try:
            yield
        finally:
            os.environ.pop("QA_BROKER") if before is None else os.environ.update(QA_BROKER=before)


def asked(platform: Platform, args: Mapping[str, Any], tool: str = "qa_pay") -> dict[str, Any]:
    """One call of a tool, as its guest answers it."""
    context, spec = guest_context(platform, RUN, {}, 25.0), TOOLS[tool]
    assert spec.run
    try:
        result = spec.run(build(spec.args, dict(args), "/args"), context)
    except Mistake as mistake:
        result = spec.result(ok=False, error=str(mistake), error_class="bad_request")
    except Failure as failure:
        result = spec.result(ok=False, error=str(failure), error_class=failure.error_class)
    return dict(json_safe(as_record(result)))


def visited(
    platform: Platform, *, acts: bool = True, calls: int = 400, seed: int = 1
) -> tuple[list[Violation], Explorer, int]:
    """What the oracles say while an explorer asks; the explorer; how many calls it made."""
    ground = ExplorerContext(platform=platform, tools=frozenset({"qa_pay", "qa_fetch", "qa_mcp"}), acts=acts)
    explorer, urls, facts = make(ground, Random(seed), {}), OwnUrls(platform), Facts.of(platform)
    found, count = list[Violation](), 0
    while count < calls and (questions := explorer.ask(48)):
        for question in questions:
            seen = list[Exchange]()
            for step in question.steps:
                args = dict(step.args)
                actual = {key: urls.actual(str(args[key])) for key in ("url", "other") if key in args}
                seen.append(Exchange(step.tool, args, asked(platform, args | actual, step.tool)))
                count += 1
            found += judge(seen, facts)
            explorer.learn(question, [one.result for one in seen])
    return found, explorer, count
