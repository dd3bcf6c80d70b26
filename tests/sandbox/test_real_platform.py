"""The guest tools in real jails against the real local platform: chain, compiler, pages, proxy."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fleet.app.bootstrap import image
from fleet.broker.broker import Broker, EgressPolicy
from fleet.chain.keys import Secret, address_of, auth_token
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform, parse
from fleet.devnet import node
from fleet.devnet.devnet import Devnet
from fleet.errors import TxFailed
from fleet.jail.bwrap.jail import BwrapJail
from fleet.runs.context import guest_context
from sandbox.spec import PROTOCOL
from tests.sandbox.doubles import NAME, NoPurse

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

KEYS = {  # development accounts 2 and 3 of the published mnemonic, unlocked in the local node
    "caller": Secret(bytes.fromhex("5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a")),
    NAME: Secret(bytes.fromhex("7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6")),
}
GOOD = "fn frame(t: i32) -> i32 { t + 1 }"


@dataclass
class UnlockedKeys(NoPurse):
    """A TxPort over the node's unlocked accounts; the keys sign tokens only."""

    rpc: Rpc
    scope: str
    sent: list[str] = field(default_factory=list)

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        self.sent.append(key)
        try:
            receipt = await node.transact(self.rpc, address_of(KEYS[key]), to, data, gas=gas)
        except TxFailed as failed:
            if failed.kind != "reverted":
                raise
            return {
                "tx": failed.tx,
                "status": 0,
                "gas_used": failed.gas_used,
                "block": 0,
                "reverted": str(failed),
            }
        used, block = int(receipt["gasUsed"], 16), int(receipt["blockNumber"], 16)
        return {
            "tx": receipt["transactionHash"],
            "status": 1,
            "gas_used": used,
            "block": block,
            "reverted": "",
        }

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, Any]:
        return {
            "token": auth_token(self.scope, KEYS[key], int(time.time()) - age, route),
            "address": address_of(KEYS[key]),
        }

    def over(self) -> tuple[str, str] | None:
        return None


@dataclass
class Rig:
    platform: Platform
    jail: BwrapJail
    broker: Broker
    keys: UnlockedKeys

    async def run(self, tool: str, **args: Any) -> dict[str, Any]:
        keys = {label: address_of(key) for label, key in KEYS.items()}
        ctx = asdict(guest_context(self.platform, "run7", keys, 20.0))
        request = {"v": PROTOCOL, "tool": tool, "args": args, "ctx": ctx}
        done = await self.jail.call(
            json.dumps(request).encode() + b"\n", deadline_s=30, egress=self.broker.egress
        )
        assert done.code == 0, done.stderr.decode()
        result: dict[str, Any] = json.loads(done.stdout)["result"]
        return result


@pytest.fixture(scope="module")
async def rig(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    base: Path = tmp_path_factory.mktemp("platform")
    async with Devnet(base / "devnet", keys=base / "keys") as devnet, Rpc(devnet.chain.url) as rpc:
        platform = parse(Platform, devnet.profile.read_text(), file="devnet.toml")
        (base / "jails").mkdir(mode=0o700)
        jail = BwrapJail(image(platform, devnet.profile), pool=1, spool=base / "jails")
        port = UnlockedKeys(rpc, platform.web.auth_scope)
        try:
            yield Rig(platform, jail, Broker(EgressPolicy.of(platform), port), port)
        finally:
            await jail.aclose()


async def test_the_chain_is_read(rig: Rig) -> None:
    result = await rig.run("qa_chain", function="ownerOfName", args=["claude"])
    assert result["ok"], result
    assert int(result["value"], 16) > 0
    assert result["block"] > 0
    cost = {"simulate": "0x637e9d5c", "types": ["uint256"], "args": ["7"], "watch": ["registrationCost"]}
    result = await rig.run("qa_chain", **cost)
    assert (result["how"], result["reverted"]) == ("simulate", "LibDiamond: not owner")
    result = await rig.run("qa_chain", **cost, sender="owner")
    assert (result["succeeded"], result["after"]) == (True, [7])
    result = await rig.run("qa_chain", surface=True)
    assert (result["ok"], {one["size"] > 0 for one in result["value"]}) == (True, {True})
    facets = await rig.run("qa_chain", function="facets")
    assert len(facets["value"]) >= 5


async def test_a_revert_is_data(rig: Rig) -> None:
    result = await rig.run("qa_chain", function="feedbackAt", args=[10**6])
    assert (result["ok"], result["error_class"], result["error"]) == (False, "reverted", "Panic(0x32)")


async def test_the_compiler_in_the_jail(rig: Rig) -> None:
    good = await rig.run("qa_compile", source=GOOD)
    assert (good["outcome"], good["entry"], good["valid"]) == ("accepted", "frame", True), good
    bad = await rig.run("qa_compile", source="fn frame( {")
    assert (bad["outcome"], bad["ok"], bad["span_start"] >= 0) == ("clean_error", False, True), bad
    for module in ("", "0061736d", "0061736d0100000007ff"):
        loaded = await rig.run("qa_compile", module_hex=module or "00")
        assert (loaded["outcome"] in ("accepted", "clean_error"), loaded["has_entry"]) == (True, False), (
            loaded
        )


async def test_pages_and_hosts(rig: Rig) -> None:
    page = await rig.run("qa_fetch", url=rig.platform.web.site + "/llms.txt")
    assert (page["ok"], page["status"], page["secrets"]) == (True, 200, [])
    face = await rig.run("qa_fetch", url=rig.platform.web.face.replace("{name}", "claude"))
    assert (face["ok"], face["a11y"]) == (True, []), face
    node_itself = await rig.run("qa_fetch", url=rig.platform.chain.rpc)
    assert node_itself["error_class"] == "refused"


async def test_a_name_is_minted_published_and_called(rig: Rig) -> None:
    made = await rig.run("qa_create", name=NAME)
    assert (made["ok"], made["owner"], made["main_unset"]) == (True, address_of(KEYS[NAME]).lower(), True), (
        made
    )
    again = await rig.run("qa_create", name=NAME)
    assert (again["ok"], again["error_class"], again["tx"]) == (False, "reverted", "")
    app = await rig.run("qa_publish", name=NAME, source=GOOD)
    assert (app["ok"], app["app_read_back"], app["face_read_back"]) == (True, True, True), app
    assert app["gas_used"] <= app["gas_limit"]
    assert app["gas_quote"] > 0
    said = await rig.run("qa_call", target=NAME, message="what is my address")
    assert (said["ok"], said["caller"], said["charged"] > 0) == (
        True,
        address_of(KEYS["caller"]).lower(),
        True,
    ), said
    stream = await rig.run(
        "qa_call", target="claude", message="héllo €€€€€€€€€€€€€€", stream=True, claim_from="0x01"
    )
    assert (stream["stream_ok"], stream["caller"]) == (True, address_of(KEYS["caller"]).lower()), stream
    empty = await rig.run("qa_call", target="claude", message="")
    assert (empty["status"], empty["charged"]) == (400, 0), empty
