"""The devnet with its surfaces: one profile for all of them, each with seeded defects, and a clean twin."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.chain.node.rpc import Rpc
from fleet.config import Platform
from fleet.config.load import load_platform
from fleet.devnet.anvil import Anvil
from fleet.devnet.devnet import Devnet
from fleet.devnet.surfaces import SEEDED, surfaces
from fleet.errors import ConfigError
from fleet.triggers.chain.posture_watch import PostureWatch
from fleet.triggers.chain.telling import TOLD, tellings
from sandbox.payment_offers import offers
from tests.doubles.triggers import FiringRecorder, MemoryFacts
from tests.drivers.mcp_visits import visited, way_out
from tests.drivers.test_registry import looked
from tests.drivers.wire_visits import explored

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

LISTED = {
    *("mcp-climb", "mcp-foreign-resource", "mcp-header", "mcp-hidden", "mcp-list-differs", "mcp-orders"),
    *("mcp-origin", "mcp-secret"),
}
"""What the MCP server's lists and resources show, without a call of a tool."""
AGENT = {"sender-claimed", "task-read", "task-cancelled", "card-extended-open", "card-signature"}
REGISTERED = {
    ("payment-terms", "body"),  # which it asks for the wallet that is paid
    ("registration-names", "file"),
    ("registration-names", "host"),
    ("registration-names", "validation"),
    ("registration-service", "A2A"),
    ("registration-service", "web"),
}


class Hurried(Devnet):
    changes_every_s = 0.1

    def _anvil(self, state: Path, port: int) -> Anvil:
        return Anvil(state, port=port, history=256)  # a watch is behind where each tenth second has a block


@pytest.mark.parametrize("seeded", [True, False], ids=["seeded", "clean"])
async def test_each_surface_shows_its_defects_and_the_clean_one_none(tmp_path: Path, seeded: bool) -> None:
    defects = {"method-405"} if seeded else set()
    async with Hurried(tmp_path / "devnet", keys=tmp_path / "keys", defects=defects, surfaces=SEEDED) as at:
        platform, _ = load_platform("devnet", tmp_path)
        async with Rpc(at.chain.url) as rpc:
            judged = await changed(platform, rpc)
        found = await anyio.to_thread.run_sync(seen, platform)
        asks = await anyio.to_thread.run_sync(quoted, platform)
    how = dict.fromkeys(("owner", "implementation", "paused"), "silent" if seeded else "announced")
    assert judged == how | ({"invariant": "broken"} if seeded else {})
    every: dict[str, set[Any]] = {"mcp": LISTED, "agent": AGENT, "registry": REGISTERED}
    assert found == (every if seeded else {name: set() for name in every})
    one, other = ({asked == price for asked in quotes} for price, quotes in asks.values())
    assert (one, other) == ({True, False} if seeded else {True}, {True})


def seen(platform: Platform) -> Mapping[str, set[Any]]:
    """What a short visit of each server shows."""
    with way_out(platform, "exercise"):
        listed, _, _ = visited(platform, acts=False)
        answered, _, _ = explored(platform.model_copy(update={"call_targets": ()}), calls=170)
    return {"mcp": {one.oracle for one in listed}, "agent": set(answered), "registry": looked(platform).found}


def quoted(platform: Platform) -> dict[str, tuple[int | None, list[int]]]:
    """By resource, what documents say, and what each form of a quote and its body do."""
    said = dict[str, tuple[int | None, list[int]]]()
    for url, price in platform.paid_urls.items():
        if price is None:  # a tool's, or an agent's
            continue
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, timeout=60)
        headers = {name.lower(): value for name, value in refused.value.headers.items()}
        body = refused.value.read()
        stated = [one.amount for one in offers(402, headers, body) if one.network != "eip155:1"]
        also = [int(one["amount"]) for one in json.loads(body).get("accepts", ()) if "amount" in one]
        said[url] = price, stated + also
    return said


async def changed(platform: Platform, rpc: Rpc) -> dict[str, str]:
    """How each part of the watched contract is judged, over so many changes that each came."""
    assert platform.watch
    contract, facts = platform.watch.contracts[0], MemoryFacts()
    watch, judged = PostureWatch(platform, rpc, facts, FiringRecorder(), lambda _: ()), dict[str, str]()
    start = await rpc.head()
    with anyio.fail_after(60):
        while await rpc.head() < start + 16:
            await watch.look()
    for _, one in tellings({key: text for key, text in facts.items() if key.startswith(TOLD)}):
        parts = [each for each in one.changes if each.part.startswith((contract, "invariant"))]
        judged |= {each.name: each.judged for each in parts if each.judged != "restored"}
    return judged


def test_a_surface_that_is_not_there_is_named() -> None:
    assert surfaces("all") == SEEDED.keys()
    assert surfaces(" mcp,posture") == {"mcp", "posture"}
    with pytest.raises(ConfigError, match="no such surface: soap") as error:
        surfaces("mcp,soap")
    assert "mcp, agent, payments, registry, posture" in error.value.remedy
