"""Deploying once, finding it again, and what stands on the chain afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.chain.node.digest import metadata_key
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER, METER, Deployment, deploy, deploy_or_load, grant
from fleet.devnet.seeded_names import SEEDED_NAMES
from fleet.errors import ConfigError
from tests.devnet.seed import entry, seed_feedback

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

ALICE = "0x" + "a1" * 20


@pytest.fixture
async def rpc(tmp_path: Path) -> AsyncIterator[Rpc]:
    async with Anvil(tmp_path / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        yield rpc


async def test_a_second_start_finds_the_first_deployment(rpc: Rpc, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    first = await deploy_or_load(rpc, path)
    block = await rpc.call("eth_blockNumber")
    assert await deploy_or_load(rpc, path) == first
    assert await rpc.call("eth_blockNumber") == block
    assert (first.deployer, first.meter, first.chain_id) == (DEPLOYER, METER, 31337)


async def test_addresses_are_the_same_on_every_fresh_chain(rpc: Rpc, tmp_path: Path) -> None:
    first = await deploy(rpc)
    async with Anvil(tmp_path / "other.json") as anvil, Rpc(anvil.url) as other:
        assert await deploy(other) == first


async def test_a_record_of_another_chain_is_not_believed(rpc: Rpc, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    await deploy_or_load(rpc, path)
    async with Anvil(tmp_path / "other.json") as anvil, Rpc(anvil.url) as other:
        again = await deploy_or_load(other, path)
        assert await other.view(again.diamond, "feedbackCount") == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"diamond": 1, "more": 2}'])
async def test_a_damaged_record_is_one_clear_error(rpc: Rpc, tmp_path: Path, text: str) -> None:
    path = tmp_path / "deployment.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="not a record of a deployment"):
        await deploy_or_load(rpc, path)
    assert path.read_text() == text


@pytest.mark.parametrize("cost", [0, 10**18])
async def test_standing_names_have_faces_and_personas(rpc: Rpc, tmp_path: Path, cost: int) -> None:
    at = await deploy_or_load(rpc, tmp_path / "deployment.json", registration_cost=cost)
    assert await rpc.view(at.diamond, "registrationCost") == cost
    for standing in SEEDED_NAMES:
        assert await rpc.view(at.diamond, "ownerOfName", standing.name) == DEPLOYER
        ident = await rpc.view(at.diamond, "idOfName", standing.name)
        found = {
            label: await rpc.view(at.diamond, "metadata", ident, metadata_key(f"localharness.{label}"))
            for label in ("persona", "public_face", "public.html")
        }
        assert found == {
            "persona": standing.persona.encode(),
            "public_face": b"html",
            "public.html": standing.html.encode(),
        }
    assert await rpc.view(at.diamond, "treasuryBalance") == cost * len(SEEDED_NAMES)
    assert await rpc.view(at.diamond, "mainOf", DEPLOYER) == 0


async def test_a_half_done_start_is_finished(rpc: Rpc, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    at = await deploy_or_load(rpc, path)
    ident = await rpc.view(at.diamond, "idOfName", "docs")
    await node.invoke(rpc, DEPLOYER, at.diamond, "releaseName", ident)
    key = metadata_key("localharness.public_face")
    claude = await rpc.view(at.diamond, "idOfName", "claude")
    await node.invoke(rpc, DEPLOYER, at.diamond, "setMetadata", claude, key, b"directory")
    await deploy_or_load(rpc, path)
    assert await rpc.view(at.diamond, "ownerOfName", "docs") == DEPLOYER
    assert await rpc.view(at.diamond, "metadata", claude, key) == b"html"


async def test_an_account_is_given_wei_and_tokens(rpc: Rpc) -> None:
    at: Deployment = await deploy(rpc)
    await node.fund(rpc, ALICE, 12345)
    await grant(rpc, at, ALICE, 77)
    assert int(await rpc.call("eth_getBalance", [ALICE, "latest"]), 16) == 12345
    assert await rpc.view(at.token, "balanceOf", ALICE) == 77


async def test_a_seeded_log_has_exactly_what_was_asked_in_order(rpc: Rpc) -> None:
    at = await deploy(rpc)
    first = await seed_feedback(rpc, at.diamond, 1500, 300)
    second = await seed_feedback(rpc, at.diamond, 1, 2048)
    senders, _, texts = await rpc.view(at.diamond, "feedbackRange", 0, 2000)
    assert list(texts) == [entry(index, 300) for index in range(1500)] + [entry(1500, 2048)]
    assert {len(text.encode()) for text in texts} == {300, 2048}
    assert list(senders) == [first] * 1500 + [second]
