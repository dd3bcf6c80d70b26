"""A Reputation registry of ERC-8004 as the log of a profile, and what others write there."""

from __future__ import annotations

from pathlib import Path

from fleet.chain.node import reputation
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.deploy import Registries

STRANGER = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"
"""An account of anvil's, which signs for it."""


def log_to(profile: Path, at: Registries, me: str) -> None:
    """Change a profile to one whose log is this registry, with the entries of `me`."""
    agent = f'[erc8004]\nidentity = "{at.identity}"\nagent = {at.agent}\nclients = ["{me}"]\n'
    profile.write_text(f'log = "erc8004:{at.reputation}"\n{profile.read_text()}\n{agent}')


async def give(rpc: Rpc, at: Registries, client: str, text: str, fp: str = "") -> None:
    """An entry of a client, as its fleet would post it."""
    uri, digest = reputation.uri_of(text, {"agentId": at.agent})
    data = reputation.GIVE.encode(at.agent, -50, 0, reputation.FINDING, fp, "", uri, digest)
    await node.transact(rpc, client, at.reputation, data)


async def answer(rpc: Rpc, at: Registries, responder: str, client: str, index: int, text: str) -> None:
    """An answer to a client's feedback."""
    uri, digest = reputation.uri_of(text, {})
    data = reputation.RESPOND.encode(at.agent, client, index, uri, digest)
    await node.transact(rpc, responder, at.reputation, data)
