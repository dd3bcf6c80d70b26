"""Probes as a run makes them: the real guest tools, the real broker, a real chain and platform; no jail."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest

from fleet.broker.broker import Broker
from fleet.broker.egress_policy import EgressPolicy
from fleet.chain.keys import Secret, address_of, auth_token, fresh
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform
from fleet.devnet import node
from fleet.drivers.expect_check import check
from fleet.drivers.session import Answer
from fleet.drivers.template import Bindings
from fleet.errors import TxFailed
from fleet.files import ROOT
from fleet.personas.load import load_all
from fleet.personas.model import Persona
from fleet.runs.call.guest_protocol import bad_args
from fleet.runs.call.targets import Capabilities
from fleet.runs.context import guest_context
from sandbox.errors import Failure
from sandbox.spec import Context, Mistake, ToolSpec, as_record
from sandbox.tools import TOOLS
from sandbox.validate import build
from tests.sandbox.doubles import NoPurse

RUN = "t0"
GUEST_S = 20.0


def personas() -> dict[str, Persona]:
    """The shipped personas, by the loader that the fleet uses."""
    good, bad = load_all(
        ROOT / "personas",
        tools=TOOLS,
        bad_args=lambda tool, args: bad_args(TOOLS[tool], args),
        bad_expectation=check,
    )
    assert bad == []
    return {loaded.persona.name: loaded.persona for loaded in good}


@dataclass
class Keys(NoPurse):
    """The broker's port to throwaway keys. The chain lets any account send: only tokens need secrets."""

    rpc: Rpc
    secrets: dict[str, Secret] = field(default_factory=dict)

    async def add(self, label: str) -> None:
        self.secrets[label] = fresh()
        await node.fund(self.rpc, address_of(self.secrets[label]), 10**18)

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        try:
            receipt = await node.transact(self.rpc, address_of(self.secrets[key]), to, data, gas=gas)
        except TxFailed as failed:
            return {"tx": failed.tx, "status": 0, "gas_used": failed.gas_used, "block": 0, "reverted": "yes"}
        used, block = int(receipt["gasUsed"], 16), int(receipt["blockNumber"], 16)
        return {
            "tx": receipt["transactionHash"],
            "status": 1,
            "gas_used": used,
            "block": block,
            "reverted": "",
        }

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, Any]:
        secret = self.secrets[key]
        token = auth_token("localharness-proxy", secret, int(time.time()) - age, route)
        return {"token": token, "address": address_of(secret)}

    def over(self) -> tuple[str, str] | None:
        return None


@dataclass
class ProbingSession:
    """The drivers' port: each call is a guest process of its own, its way out a broker of its own."""

    platform: Platform
    keys: Keys
    compiler: tuple[str, ...]
    names: int = 0

    async def fresh_callers(self) -> None:
        pass

    def bindings(self, *, fresh_name: bool) -> Bindings:
        self.names += fresh_name
        web = self.platform.web
        name = f"qa-{RUN}-{self.names}" if fresh_name else ""
        targets = self.platform.targets
        return Bindings(run=RUN, name=name, site=web.site, proxy=web.proxy, face=web.face, targets=targets)

    def history(self) -> Mapping[str, float]:
        return self.platform.history

    def facts(self) -> Mapping[str, Any]:
        return self.platform.facts

    async def missing(self, needs: Iterable[str]) -> str:
        return Capabilities(self.platform).missing(needs)

    async def wait_for(self, tool: str, args: Mapping[str, Any], tries: int) -> bool:
        return tries < 3  # a machine that is busy for a moment

    async def call(
        self, tool: str, args: Mapping[str, Any], *, probe: str = "", proof: bool = False
    ) -> Answer:
        for label in {"caller", "other", str(args.get("name") or "caller")} - self.keys.secrets.keys():
            await self.keys.add(label)
        listener = socket.create_server(("127.0.0.1", 0))
        broker = Broker(EgressPolicy.of(self.platform), self.keys)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("QA_BROKER", f"http://127.0.0.1:{listener.getsockname()[1]}")
            async with broker.egress(listener):
                result = await anyio.to_thread.run_sync(_guest, TOOLS[tool], dict(args), self._context())
        return Answer(json.loads(json.dumps(as_record(result))))

    def _context(self) -> Context:
        keys = {label: address_of(secret) for label, secret in self.keys.secrets.items()}
        context = guest_context(self.platform, RUN, keys, GUEST_S)
        program = replace(context.program, command=self.compiler, loader=(*self.compiler, "--entry"))
        return replace(context, program=program)


def _guest(spec: ToolSpec, args: dict[str, Any], ctx: Context) -> Any:
    """What the guest does with a request, without its own process: a failure of the tool is a result."""
    assert spec.run is not None
    try:
        return spec.run(build(spec.args, args, "/args"), ctx)
    except Mistake as mistake:
        return spec.result(ok=False, error=str(mistake), error_class="bad_request")
    except Failure as failure:
        return spec.result(ok=False, error=str(failure), error_class=failure.error_class)
