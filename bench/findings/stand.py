"""A generated platform, running: chain, diamond with a facet of its own, pages, and the profile."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread

from bench.findings.blueprint import Blueprint
from bench.findings.classes.functions import functions
from bench.findings.facet import compiled, source
from bench.findings.switches import Switch, drawn
from fleet.chain.node import codec
from fleet.chain.node.digest import ZERO_ADDRESS, keccak256
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import CHAIN_ID, Anvil
from fleet.devnet.deploy import DEPLOYER, METER, deploy
from fleet.devnet.devnet import COMPILER, SAMPLE
from tests.platforms.profile import Profile, written
from tests.platforms.served import Served, free_port
from tests.platforms.stand import Stand

NAME = "generated"
FEE_WEI = 5 * 10**15
TOOL = ["{python}", "-I", "-S", "-B", "/opt/tc/rustlite", "--defects", ""]


async def deployed(rpc: Rpc, plan: Blueprint, switches: Collection[Switch]) -> str:
    """The address of a new diamond with the platform's own facet, its agents and a few things on it."""
    made = await deploy(rpc)
    code = await anyio.to_thread.run_sync(compiled, source(plan, switches))  # seconds
    facet = await node.create(rpc, DEPLOYER, code)
    listed = functions(plan)
    selectors = [bytes.fromhex(one.selector[2:]) for one in listed]
    cut = [(facet, 0, selectors)]
    await node.invoke(rpc, DEPLOYER, made.diamond, "diamondCut", cut, ZERO_ADDRESS, b"")
    for agent in plan.agents:
        await node.invoke(rpc, DEPLOYER, made.diamond, "register", agent)
    by_role = {one.role: one.signature for one in listed}
    for role, sender, values in (
        ("setFee", DEPLOYER, (FEE_WEI,)),
        ("setCap", DEPLOYER, (plan.cap_value,)),
        ("make", DEPLOYER, (2,)),
        ("make", METER, (plan.cap_value,)),
        ("make", DEPLOYER, (1,)),
    ):
        await node.transact(rpc, sender, made.diamond, encoded(by_role[role], values))
    return made.diamond


def encoded(signature: str, values: tuple[object, ...]) -> bytes:
    """Calldata of a function by its canonical signature."""
    types = [one for one in signature.partition("(")[2].rstrip(")").split(",") if one]
    return keccak256(signature.encode())[:4] + codec.encode(types, list(values))


def describe(plan: Blueprint, rpc: str, diamond: str, url: str) -> Profile:
    """The profile that an operator of this platform would write; it names no defect and no place of one."""
    return {
        "name": NAME,
        "call_targets": list(plan.agents),
        "chain": {"rpc": rpc, "id": CHAIN_ID, "diamond": diamond},
        "web": {
            "site": url,
            "face": url + plan.face,
            "proxy": url,
            "model": plan.model,
            "auth_scope": plan.scope,
            "route": plan.route,
            "call_path": plan.calls[0],
            "stream_path": plan.calls[1],
            "token_header": plan.header,
        },
        "compiler": {
            "root": str(COMPILER),
            "command": TOOL,
            "loader": [*TOOL, "--entry"],
            "language": "rustlite",
            "sample": SAMPLE,
        },
        "metadata": {"app": f"{plan.thing}.app", "face": f"{plan.thing}.face"},
        "targets": {
            "agent": plan.agents[0],
            "assistant": plan.agents[1],
            "page": plan.agents[0],
            "second-page": plan.agents[1],
            "guide": "{site}" + plan.paths["llms"],
            "manual": "{site}" + plan.paths["guide"],
            "settings": "{site}" + plan.paths["prefs"],
            "script": "{site}" + plan.paths["script"],
            "status": "{site}" + plan.paths["status"],
        },
        "facts": {
            "call_price_wei": plan.price_wei,
            "open_registration": True,
            "streams": True,
            "calls_need_token": True,
            "has_owner": True,
            "unknown_names_404": True,
        },
    }


@asynccontextmanager
async def generated(folder: Path, seed: int, on: Collection[str] = ()) -> AsyncIterator[Stand]:
    """The platform of a seed with these classes on, on a new chain in `folder`; its profile is in there."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = Blueprint.drawn(seed)
    switches = [one for one in drawn(plan) if one.klass in on]
    async with Anvil(folder / "chain.json") as chain, Rpc(chain.url) as rpc:
        diamond = await deployed(rpc, plan, switches)
        port = free_port()
        settings = folder / "site.json"
        settings.write_text(
            json.dumps(
                {
                    "seed": seed,
                    "on": sorted(on),
                    "port": port,
                    "rpc": chain.url,
                    "diamond": diamond,
                    "chain_id": CHAIN_ID,
                }
            ),
            "utf-8",
        )
        words = (sys.executable, "-m", "bench.findings.site", str(settings))
        async with Served(words, port, folder / "site.log") as web:
            profile = folder / f"{NAME}.toml"
            profile.write_text(written(describe(plan, chain.url, diamond, web.url)), "utf-8")
            yield Stand(NAME, profile, chain, rpc, diamond, web, {})
