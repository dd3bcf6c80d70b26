"""The facet of a generated platform: as documented, and each switch of the chain shows its effect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.findings.blueprint import Blueprint
from bench.findings.classes.functions import function, functions
from bench.findings.rules import EvidenceCall, Posted
from bench.findings.stand import deployed, encoded
from bench.findings.switches import Switch, drawn
from fleet.chain.node.rpc import Rpc
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER, METER
from fleet.errors import RpcError

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

STRANGER = "0x" + "ab" * 20
CLASSES = ("chain-owner", "chain-stranger", "chain-limit", "chain-view")


@asynccontextmanager
async def facet(folder: Path, seed: int, switches: tuple[Switch, ...]) -> AsyncIterator[Any]:
    """Calls a function by its role, without sending it: the number it gives, None for a revert."""
    plan = Blueprint.drawn(seed)
    async with Anvil(folder / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        diamond = await deployed(rpc, plan, switches)

        async def ask(role: str, *values: object, sender: str = STRANGER) -> int | None:
            data = "0x" + encoded(function(plan, role).signature, values).hex()
            try:
                answer = await rpc.call("eth_call", [{"from": sender, "to": diamond, "data": data}, "latest"])
            except RpcError:
                return None
            return int(answer[2:66] or "0", 16) if answer != "0x" else 0

        yield ask


def on(seed: int) -> dict[str, Switch]:
    return {one.klass: one for one in drawn(Blueprint.drawn(seed)) if one.klass in CLASSES}


async def effects(ask: Any, seed: int) -> dict[str, bool]:
    """Whether each class's effect is there."""
    plan, switches = Blueprint.drawn(seed), on(seed)
    owner = switches["chain-owner"].place
    stranger = switches["chain-stranger"].place
    limit = switches["chain-limit"]
    beyond = {"zero": 0, "edge": plan.cap_value + 1, "none": 2**255}[limit.kind]
    last = (1,) if limit.place == "weigh" else ()
    view = {
        "ownerOf": await ask("ownerOf", 1) != await ask("read", 1),
        "count": await ask("count", DEPLOYER) != 2,
        "total": await ask("total") != 3,
    }
    return {
        "chain-owner": await ask(owner, STRANGER if owner == "collect" else 1) is not None,
        "chain-stranger": await ask(stranger, 1, STRANGER if stranger == "give" else 1) is not None,
        "chain-limit": await ask(limit.place, *last, beyond, sender=DEPLOYER) is not None,
        "chain-view": view[switches["chain-view"].place],
    }


async def test_the_clean_facet_is_as_documented(tmp_path: Path) -> None:
    plan = Blueprint.drawn(1)
    async with facet(tmp_path, 1, ()) as ask:
        assert await effects(ask, 1) == dict.fromkeys(CLASSES, False)
        assert await ask("make", 1) == 4
        assert await ask("make", plan.cap_value) == 4
        assert await ask("keeper") == int(DEPLOYER, 16)
        assert await ask("cap") == plan.cap_value
        assert [await ask("ownerOf", one) for one in (1, 2, 9)] == [int(DEPLOYER, 16), int(METER, 16), 0]
        assert await ask("count", METER) == 1


@pytest.mark.parametrize("seed", [1, 2])
async def test_each_switch_of_the_chain_shows_its_effect(tmp_path: Path, seed: int) -> None:
    switches = on(seed)
    async with facet(tmp_path, seed, tuple(switches.values())) as ask:
        assert await effects(ask, seed) == dict.fromkeys(CLASSES, True)


def test_a_rule_of_the_chain_looks_for_its_function_by_name_or_selector() -> None:
    plan = Blueprint.drawn(1)
    for one in on(1).values():
        named = function(plan, one.place)
        others = [other for other in functions(plan) if named.name not in other.name]
        for word in (named.name, named.selector):
            call = EvidenceCall("qa_chain", {"function": word}, {"ok": True})
            assert one.rule.shows(Posted(title="", calls=(call,)))
        for other in others:
            call = EvidenceCall("qa_chain", {"function": other.selector}, {"ok": True})
            assert not one.rule.shows(Posted(title="", calls=(call,)))
