"""`fleet init --log`: which log a word names, what is asked of the chain, what is deployed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import anyio.to_thread
import pytest
from typer.testing import CliRunner

from fleet.app.discovery.discover import Discovery
from fleet.app.discovery.json_rpc import FoundContract, FoundNode
from fleet.app.discovery.profile import ProfileContext, profile_text
from fleet.chain.keys import address_of, load_key
from fleet.chain.log.choice import log_of
from fleet.chain.signing.judge import SigningLimits
from fleet.chain.signing.signer import Keys, Signer
from fleet.cli import app
from fleet.cli.init_log import chosen_log
from fleet.config import Platform, parse
from fleet.config.authorisation import AuthorisationSection
from fleet.devnet.deploy import deploy_registries
from fleet.errors import UsageError, WrongTarget
from tests.chain.conftest import Chain
from tests.doubles.chain_memory import MemoryJournal

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


@pytest.fixture
def found(chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Discovery:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    diamond = FoundContract(address=chain.at.diamond, how="named", takes_feedback=True)
    node = FoundNode(rpc=chain.rpc.url, id=chain.at.chain_id, how="asked")
    return Discovery(node=node, contract=diamond)


async def profile(found: Discovery, word: str, agent: int | None = None) -> Platform:
    chosen = await chosen_log(word, found, agent)
    context = ProfileContext(
        name="here",
        command="fleet init",
        day="2026-11-27",
        authorisation=AuthorisationSection(),
        log=chosen.log,
        agent=chosen.agent,
    )
    return parse(Platform, profile_text(found, context), file="here.toml")


async def post(chain: Chain, platform: Platform, state: Path) -> list[str]:
    """The log after an entry under the key that is in this state directory."""
    agent = platform.agent.agent if platform.agent else None
    signer = Signer(
        chain.rpc,
        platform.chain,
        MemoryJournal(),
        keys=Keys(identity=load_key(state / "keys" / "identity")),
        fences=SigningLimits(rung=lambda: "observe", log=platform.log_contract, agent=agent),
    )
    log = log_of(platform, state, chain.rpc, signer)
    await log.post("here")
    return [entry.text for entry in await log.range(0, 9)]


async def test_a_log_is_deployed_by_an_account_of_the_node_and_takes_an_entry(
    chain: Chain, found: Discovery, tmp_path: Path
) -> None:
    platform = await profile(replace(found, contract=None), "deploy")
    await chain.rpc.check_target(platform)
    assert (platform.log, platform.chain.diamond) == (f"contract:{platform.log_contract}", "")
    assert await post(chain, platform, tmp_path) == ["here"]


async def test_a_registry_is_asked_for_the_rest(chain: Chain, found: Discovery, tmp_path: Path) -> None:
    at = await deploy_registries(chain.rpc)
    platform = await profile(found, f"erc8004:{at.reputation}", at.agent)
    await chain.rpc.check_target(platform)
    me = address_of(load_key(tmp_path / "keys" / "identity"))
    assert platform.agent is not None
    assert (platform.agent.identity, platform.agent.clients) == (at.identity, (me,))
    await chain.rpc.call("anvil_setBalance", [me, hex(10**18)])
    assert await post(chain, platform, tmp_path) == ["here"]


async def test_a_history_goes_from_a_contract_to_a_file_and_back(
    chain: Chain, found: Discovery, tmp_path: Path
) -> None:
    """The file has no key: its entries are from the zero address, and ours all the same."""
    bare = replace(found, contract=None)
    platform = await profile(bare, "deploy")
    assert await post(chain, platform, tmp_path) == ["here"]
    lines = (
        f'name = "here"\nlog = "{platform.log}"\n[chain]\nrpc = "{chain.rpc.url}"\nid = {chain.at.chain_id}\n'
    )
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "here.toml").write_text(lines)
    (tmp_path / "fleet.toml").write_text('platform = "here"\n')

    async def copied(source: str, target: str) -> int:
        words = ["items", "log", "copy", source, target, "--json"]
        done = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(app, words))
        assert done.exit_code == 0, done.exception
        return int(json.loads(done.stdout)["entries"])

    other = (await profile(bare, "deploy")).log
    assert await copied(platform.log, "file") == 1
    assert await copied("file", other) == 1
    assert await copied("file", other) == 0
    assert await copied(other, platform.log) == 0


async def test_the_diamond_that_was_named_is_the_chain_s_own_log(chain: Chain, found: Discovery) -> None:
    assert (await profile(found, f"contract:{chain.at.diamond}")).log == "chain"
    assert (await profile(found, "file")).log == "file"


async def test_a_contract_without_a_log_is_refused(chain: Chain, found: Discovery) -> None:
    platform = await profile(found, f"contract:{chain.at.token}")
    with pytest.raises(WrongTarget, match=r"has no feedbackCount\(\): log of profile 'here'"):
        await chain.rpc.check_target(platform)


@pytest.mark.parametrize(
    ("word", "agent", "why"),
    [
        ("local", None, "write file, deploy, contract:ADDRESS, erc8004:ADDRESS"),
        ("contract:0x12", None, "write file"),
        ("erc8004:" + "0x" + "1" * 40, None, "needs --agent ID"),
        ("erc8004:" + "0x" + "1" * 40, 0, "is no Reputation registry"),
    ],
)
async def test_what_is_no_log_is_said(found: Discovery, word: str, agent: int | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        await chosen_log(word, found, agent)


@pytest.mark.parametrize("word", ["deploy", "contract:0x" + "1" * 40])
async def test_a_log_on_chain_needs_the_node(found: Discovery, word: str) -> None:
    with pytest.raises(UsageError, match="needs the node of its chain"):
        await chosen_log(word, replace(found, node=None, contract=None), None)


async def test_a_node_without_accounts_deploys_nothing(
    found: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(*_: object) -> list[str]:
        return []

    monkeypatch.setattr("fleet.chain.node.rpc.Rpc.call", none)
    with pytest.raises(UsageError, match="holds no account that could deploy"):
        await chosen_log("deploy", found, None)
