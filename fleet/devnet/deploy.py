"""Puts the reference contracts on a local chain, once, and remembers where.

The deployer and the meter are anvil's unlocked development accounts 0 and 1: no key is needed, and on a fresh
chain the addresses are the same every time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fleet.chain.node import codec
from fleet.chain.node.abi import CUT
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.devnet import artifact, node
from fleet.devnet.anvil import CHAIN_ID
from fleet.devnet.seeded_names import register_seeded_names
from fleet.errors import ConfigError, WrongTarget
from fleet.files import write_atomic

DEPLOYER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
METER = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"

_ADD = 0


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where everything is; addresses in lower case. `meter` is the only account that may charge credits."""

    diamond: str
    token: str
    deployer: str
    meter: str
    chain_id: int


async def deploy_or_load(rpc: Rpc, path: Path, *, registration_cost: int = 0) -> Deployment:
    """The deployment that `path` records if its code is still there, else a new one with its standing names.

    Safe to repeat after a crash at any point: the file is written after the contracts, and only free names
    are registered.

    Args:
        registration_cost: in wei of the token; only a new deployment looks at it.
    """
    try:
        deployment = Deployment(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        deployment = None
    except (ValueError, TypeError):
        raise ConfigError(
            f"{path}: not a record of a deployment", remedy="remove the file to deploy the contracts again"
        ) from None
    is_there = deployment is not None and all(
        [await node.has_code(rpc, contract) for contract in (deployment.diamond, deployment.token)]
    )
    if deployment is None or not is_there:
        deployment = await deploy(rpc, registration_cost=registration_cost)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(asdict(deployment), indent=1).encode())
    await register_seeded_names(rpc, deployment.diamond, deployment.token, deployment.deployer)
    return deployment


async def deploy(
    rpc: Rpc, *, registration_cost: int = 0, facets: Sequence[str] = artifact.FACETS
) -> Deployment:
    """A new token and a new diamond, with all facets by default.

    Raises WrongTarget when the node is not a local devnet.
    """
    chain_id = int(await rpc.call("eth_chainId"), 16)
    if chain_id != CHAIN_ID:
        raise WrongTarget(
            f"{rpc.url} is chain {chain_id}, the devnet is {CHAIN_ID}",
            remedy="give the address of a chain that `fleet devnet up` started",
        )
    token = await node.create(rpc, DEPLOYER, artifact.load("CreditToken").code)
    diamond = await create_diamond(rpc, facets, token)
    if "CreditFacet" in facets:
        selector = artifact.load("CreditFacet").selectors()["setMeter(address)"]
        await node.transact(rpc, DEPLOYER, diamond, selector + codec.encode(["address"], [METER]))
    if registration_cost:
        await node.invoke(rpc, DEPLOYER, diamond, "setRegistrationCost", registration_cost)
    return Deployment(diamond, token, DEPLOYER, METER, chain_id)


async def create_diamond(
    rpc: Rpc, facets: Sequence[str], token: str = "", *, left_out: Collection[str] = ()
) -> str:
    """The address of a new diamond of these facets, all functions but those named in `left_out`.

    Without a token nothing is initialised: names are free, and it claims no interface.
    """
    init, data = ZERO_ADDRESS, b""
    if token:
        init = await node.create(rpc, DEPLOYER, artifact.load("DiamondInit").code)
        selector = artifact.load("DiamondInit").selectors()["init(address)"]
        data = selector + codec.encode(["address"], [token])
    addresses = [await node.create(rpc, DEPLOYER, artifact.load(facet).code) for facet in facets]
    cuts = []
    for facet, address in zip(facets, addresses, strict=True):
        selectors = artifact.load(facet).selectors().items()
        cuts.append(
            (address, _ADD, [one for name, one in selectors if name.partition("(")[0] not in left_out])
        )
    arguments = codec.encode(["address", CUT, "address", "bytes"], [DEPLOYER, cuts, init, data])
    return await node.create(rpc, DEPLOYER, artifact.load("Diamond").code + arguments)


@dataclass(frozen=True, slots=True)
class Registries:
    """Two registries of ERC-8004, and the id of the deployer's agent; addresses in lower case."""

    identity: str
    reputation: str
    agent: int


async def deploy_registries(rpc: Rpc) -> Registries:
    """New registries with one agent, which belongs to the deployer."""
    identity = await node.create(rpc, DEPLOYER, artifact.load("IdentityRegistry").code)
    code = artifact.load("ReputationRegistry").code + codec.encode(["address"], [identity])
    reputation = await node.create(rpc, DEPLOYER, code)
    register = artifact.load("IdentityRegistry").selectors()["register(string)"]
    uri = codec.encode(["string"], ["https://agent.example.org/"])
    receipt = await node.transact(rpc, DEPLOYER, identity, register + uri)
    return Registries(identity, reputation, int(receipt["logs"][0]["topics"][1], 16))


async def grant(rpc: Rpc, deployment: Deployment, address: str, amount: int) -> None:
    """Gives `amount` wei of the token to `address`, from the deployer's."""
    await node.invoke(rpc, deployment.deployer, deployment.token, "transfer", address, amount)
