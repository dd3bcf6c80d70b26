"""A daemon on a devnet whose profile has `ws`: new blocks wake its chain triggers."""

from __future__ import annotations

import json

import anyio
import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform, parse
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.files import ROOT
from fleet.store.journal import Journal
from fleet.triggers.chain.telling import KEY as POSTURE
from fleet.triggers.chain.watch import KEY
from tests.service.conftest import FETCH, Up, persona

pytestmark = [pytest.mark.anyio, pytest.mark.jail, pytest.mark.devnet]


async def _watching(up: Up, key: str) -> None:
    """Wait until a watch has seen what is there already, which is not news."""
    async with await Journal.open(up.state / "fleet.db") as journal:
        with anyio.fail_after(60):
            while await journal.get(key) is None:  # noqa: ASYNC110 - it is another process that writes it
                await anyio.sleep(0.05)


async def _register(up: Up, name: str) -> None:
    await _watching(up, KEY)
    profile = parse(Platform, up.devnet.profile.read_text(), file="devnet.toml")
    async with Rpc(profile.chain.rpc) as rpc:
        deployer = (await rpc.call("eth_accounts"))[0]
        await node.invoke(rpc, deployer, profile.chain.diamond, "register", name)


async def test_the_profile_of_a_devnet_names_its_websocket(up: Up) -> None:
    profile = parse(Platform, up.devnet.profile.read_text(), file="devnet.toml")
    chain: Anvil = up.devnet.chain
    assert (profile.chain.rpc, profile.chain.ws) == (chain.url, chain.ws_url)
    assert chain.ws_url == f"ws://127.0.0.1:{chain.port}"


async def test_a_name_that_is_registered_fires_and_the_subscription_is_told(up: Up) -> None:
    up.drop("qa-on", persona("qa-on", FETCH, trigger='on = "registered"'))
    process = up.start()
    await up.until(lambda: up.told("subscription.opened"), 60)
    await _register(up, "subscribed-to")
    await up.until(lambda: up.told("trigger.fired"), 60)
    assert await up.end(process) == 0
    assert len(up.told("subscription.opened")) == 1
    assert up.told("subscription.lost") == []
    assert [event.persona for event in up.told("trigger.fired")] == ["qa-on"]
    assert "Connecting to" not in up.log()


async def test_a_websocket_that_does_not_answer_is_told_once_and_polling_fires(up: Up) -> None:
    path = up.state / "devnet" / "devnet.toml"
    path.write_text(path.read_text().replace(up.devnet.chain.ws_url, "ws://127.0.0.1:1"))
    up.drop("qa-on", persona("qa-on", FETCH, trigger='on = "registered"'))
    process = up.start()
    await up.until(lambda: up.told("subscription.lost"), 60)
    await _register(up, "polled-for")
    await up.until(lambda: up.told("trigger.fired"), 60)
    assert await up.end(process) == 0
    assert [event.reason for event in up.told("subscription.lost")] == ["connection refused"]
    assert up.told("subscription.opened") == []


async def test_a_cut_of_the_diamond_is_watched_told_and_shown(up: Up) -> None:
    watch = (ROOT / "personas/qa-watch.md").read_text("utf-8")
    up.drop("qa-watch", watch)
    process = up.start()
    profile = parse(Platform, up.devnet.profile.read_text(), file="devnet.toml")
    diamond, selector = profile.chain.diamond, FUNCTIONS["creditOf"].selector

    await up.until(lambda: up.told("daemon.started"))
    await _watching(up, f"{POSTURE}devnet")
    async with Rpc(profile.chain.rpc) as rpc:
        deployer = (await rpc.call("eth_accounts"))[0]
        cut = [(ZERO_ADDRESS, 2, [selector])]
        await node.invoke(rpc, deployer, diamond, "diamondCut", cut, ZERO_ADDRESS, b"")
    (fired,) = await up.until(lambda: up.told("trigger.fired"))
    assert fired.key.startswith("qa-watch@posture-changed:")
    seen = json.loads(up.fleet("check", "posture", "--json").stdout)
    assert seen["parts"][f"{diamond.lower()} owner"] == deployer.lower()
    (change,) = seen["changes"]
    assert (change["part"], change["by"]) == (
        f"{diamond.lower()} selector 0x{selector.hex()}",
        "its event DiamondCut",
    )
    assert await up.end(process) == 0
