"""Where `fleet init` lets findings be posted: a file, a contract that takes them, one that it deploys."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.app.discovery.discover import ADDRESS, Discovery
from fleet.app.discovery.json_rpc import FoundNode
from fleet.chain.keys import address_of, create_key, load_key
from fleet.chain.node import reputation
from fleet.chain.node.rpc import Rpc
from fleet.cli.console import note, state
from fleet.config import key_file, load_fleet
from fleet.config.erc8004 import Erc8004Section
from fleet.devnet import artifact, node
from fleet.errors import RpcError, UsageError
from fleet.text import clean

CHOICES = "file|deploy|contract:ADDRESS|erc8004:ADDRESS"
COINS = 10**18
"""Wei that the identity gets on the chain where its log is deployed, which is a chain for development."""


@dataclass(frozen=True, slots=True)
class ChosenLog:
    """`log` of a profile, and the table that an ERC-8004 registry needs."""

    log: str
    agent: Erc8004Section | None = None


async def chosen_log(word: str, found: Discovery, agent: int | None) -> ChosenLog:
    """The log that a word names; `agent` is the platform's id in a registry. UsageError for another word."""
    kind, _, address = word.partition(":")
    if word == "file":
        return ChosenLog(word)
    if word != "deploy" and not (kind in ("contract", "erc8004") and ADDRESS.fullmatch(address)):
        raise UsageError(
            f"--log {clean(word, 60)}: write {CHOICES.replace('|', ', ')}",
            remedy="the file is the local log: it needs no chain",
        )
    if found.node is None:
        raise UsageError(
            f"--log {word} needs the node of its chain",
            remedy=f"name it too: fleet init URL https://RPC-URL --log {word}",
        )
    contract = found.contract
    if contract and contract.takes_feedback and contract.address.lower() == address.lower():
        return ChosenLog("chain")
    async with Rpc(found.node.rpc) as rpc:
        if word == "deploy":
            return ChosenLog(f"contract:{await _deployed(rpc, found.node)}")
        if kind == "contract":
            return ChosenLog(word)
        if agent is None:
            raise UsageError(f"--log {word} needs --agent ID: the platform's own in the registry")
        return ChosenLog(word, await _section(rpc, address, agent))


async def _section(rpc: Rpc, registry: str, agent: int) -> Erc8004Section:
    """The table of a registry, whose only reader so far is this fleet."""
    try:
        answer = await rpc.eth_call(registry, reputation.IDENTITY_REGISTRY.encode())
        (identity,) = reputation.IDENTITY_REGISTRY.decode(answer)
    except (RpcError, ValueError):
        raise UsageError(f"{registry} is no Reputation registry: it has no getIdentityRegistry()") from None
    return Erc8004Section(identity=identity, agent=agent, clients=(_identity(),), from_block=await rpc.head())


async def _deployed(rpc: Rpc, found: FoundNode) -> str:
    """The address of a new feedback log, paid for by an account that the node itself holds.

    No key of the fleet's deploys anything: on a chain whose node holds no account a person does.
    """
    try:
        accounts = await rpc.call("eth_accounts")
    except RpcError:
        accounts = []
    if not accounts:
        raise UsageError(
            f"{found.rpc} holds no account that could deploy a log",
            remedy="deploy fleet/devnet/contracts/FeedbackFacet.sol there, and write --log contract:ADDRESS",
        )
    payer, identity = str(accounts[0]), _identity()
    address = await node.create(rpc, payer, artifact.load("FeedbackFacet").code)
    note(f"a feedback log was deployed at {address}, by account {payer} of the node")
    tx = {"from": payer, "to": identity, "value": hex(COINS)}
    await node.await_receipt(rpc, await rpc.call("eth_sendTransaction", [tx]))
    return address


def _identity() -> str:
    """The address that entries will be from; its key is made where there is none."""
    path = key_file(load_fleet(), "identity", state())
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return create_key(path)
    return address_of(load_key(path))
