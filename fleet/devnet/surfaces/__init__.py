"""What agents of a platform offer besides its own protocol, each with seeded defects and a clean twin.

An MCP server, an agent by A2A, resources that are paid for (x402), a registration (ERC-8004), a contract that
changes while it is watched: servers in this process, on loopback, that tests and marks look at as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from anyio.from_thread import start_blocking_portal

from fleet.chain.keys import address_of, create_key, load_key, write_new
from fleet.chain.node.rpc import Rpc
from fleet.devnet import artifact, node
from fleet.devnet.deploy import DEPLOYER, deploy_registries
from fleet.devnet.surfaces import posture
from fleet.devnet.surfaces.harbour import TOKENS, open_office
from fleet.devnet.surfaces.herbarium_wires import USERS, open_herbarium
from fleet.devnet.surfaces.lodge import PAYEE, Lodge, open_lodge
from fleet.devnet.surfaces.tollhouse import NETWORK, PAGE, TOOL, Tollhouse, served
from fleet.errors import ConfigError

PRICED = {
    **dict.fromkeys(("body-differs", "document-differs", "receipt-invented"), 0),
    **dict.fromkeys(("list-differs", "underpaid"), 1),
    "card-differs": 2,
}
"""Defects of what is paid for, with the place of each: a page, a tool, another page."""
SEEDED: Mapping[str, tuple[str, ...]] = {
    "mcp": (
        *("output-misfit", "required-unchecked", "type-unchecked", "range-unchecked", "shell", "template"),
        *("climb", "climb-resource", "sql", "secret-listed", "secret-answered", "hidden-text", "orders"),
        *("origin-unchecked", "list-changes", "list-by-client", "header-unchecked", "trace"),
        *("draft-open", "letter-open"),
    ),
    "agent": ("sender-claimed", "task-read", "task-cancelled", "extended-open", "card-forged"),
    "payments": tuple(PRICED),
    "registry": ("of-others", "host-of-others", "card-gone", "page-gone", "validation-misplaced"),
    "posture": posture.DEFECTS,
}
"""By surface, the defects that are distinguished where they stand together."""
HOLDS = 100_000
"""Units that the purse is given."""


def surfaces(text: str) -> frozenset[str]:
    """Names from a comma-separated list, `all` or nothing; ConfigError names those that exist."""
    wanted = frozenset(SEEDED) if text == "all" else frozenset(filter(None, map(str.strip, text.split(","))))
    if unknown := sorted(wanted - SEEDED.keys()):
        raise ConfigError(f"no such surface: {', '.join(unknown)}", remedy=f"choose from {', '.join(SEEDED)}")
    return wanted


@dataclass
class Opened:
    """What a profile says of them: hosts and paths of `[web]`, and tables of their own."""

    hosts: list[str] = field(default_factory=list)
    acts: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)
    """Endpoints of MCP servers."""
    tables: list[str] = field(default_factory=list)

    def at(self, url: str, *acts: str) -> None:
        self.hosts.append(urlsplit(url).netloc)
        self.acts += acts

    @property
    def web(self) -> str:
        return f"hosts = {json.dumps(self.hosts)}\nact_paths = {json.dumps(self.acts)}" if self.hosts else ""


@contextmanager
def opened(
    names: frozenset[str], rpc_url: str, folder: Path, keys: Path, *, seeded: bool, every_s: float = 5.0
) -> Iterator[Opened]:
    """The named surfaces, for as long as the context lasts; blocks its thread.

    Args:
        folder: gets the secrets of the two accounts that the agents know.
        keys: gets the purse, of which a token of the payments' own is made out to.
        every_s: how often the watched contract changes.
    """
    made, bad = Opened(), {one: frozenset(SEEDED[one] if seeded else ()) for one in names}
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        rpc = stack.enter_context(portal.wrap_async_context_manager(Rpc(rpc_url)))
        if "mcp" in names:
            url = stack.enter_context(open_office(*bad["mcp"], protected=True)).url
            made.at(url, f"{url}/mcp")
            made.servers.append(f"{url}/mcp")
        if "agent" in names:
            url = stack.enter_context(open_herbarium("a2a-1.0", *sorted(bad["agent"]))).url
            made.at(url)
            made.tables.append(f'[agents.fern]\nwire = "a2a-1.0"\nurl = "{url}/a2a"')
        if names & {"mcp", "agent"}:
            made.tables.append(_accounts(folder))
        if "payments" in names:
            token = portal.call(node.create, rpc, DEPLOYER, artifact.load("PayToken").code)
            purse = keys / "purse"
            payer = address_of(load_key(purse)) if purse.exists() else create_key(purse)
            portal.call(node.invoke, rpc, DEPLOYER, token, "transfer", payer, HOLDS)
            placed = {one: PRICED[one] for one in bad["payments"]}
            house = Tollhouse(rpc_url, token, PAYEE, 36, placed, mixed=True, wires=(PAGE, TOOL, PAGE))
            url = stack.enter_context(served(house))
            made.at(url, *(f"{url}{one.path}" for one in house.sold if one.wire == PAGE), f"{url}/mcp")
            made.servers.append(f"{url}/mcp")
            made.tables.append(_payments(url, house))
        if "registry" in names:
            identity = portal.call(deploy_registries, rpc).identity
            lodge = Lodge(portal, rpc, identity, bad["registry"])
            stack.enter_context(open_lodge(lodge))
            made.at(lodge.url)
            table = f'[erc8004]\nidentity = "{identity}"\nagent = {lodge.agent}'
            made.tables.append(f'{table}\nvalidation = "{lodge.validation}"')
        if "posture" in names:
            contract = portal.call(node.create, rpc, DEPLOYER, artifact.load("Watched").code)
            stack.enter_context(posture.changing(portal, rpc, contract, DEPLOYER, bad["posture"], every_s))
            made.tables.append(_watch(contract))
        if made.servers:
            made.tables.append(f"[mcp]\nendpoints = {json.dumps(made.servers)}")
        yield made


def _accounts(folder: Path) -> str:
    lines = []
    for (secret, label), user in zip(TOKENS.items(), USERS.values(), strict=True):
        path = folder / f"{label}.secret"
        path.unlink(missing_ok=True)
        write_new(path, secret.encode() + b"\n")
        lines.append(f'[accounts.{label}]\nuser = "{user}"\nsecret_file = "{path}"')
    return "\n\n".join(lines)


def _payments(url: str, house: Tollhouse) -> str:
    pages = {f"{url}{one.path}": one.price for one in house.sold if one.wire == PAGE}
    paths = [*pages, f"{url}/mcp"]
    prices = "\n".join(f'"{page}" = {price}' for page, price in pages.items())
    return f"""[payments]
resources = {json.dumps(paths)}
asset = "{house.token}"
name = "Devnet Dollar"
version = "1"
decimals = 6
network = "{NETWORK}"
most = 2000
per_run = {HOLDS}
holds = {HOLDS}
payee = "{PAYEE}"

[payments.prices]
{prices}"""


def _watch(contract: str) -> str:
    return f"""[watch]
contracts = ["{contract}"]

[watch.invariants.solvent]
holds = "{posture.INVARIANT}"

[watch.invariants.solvent.views]
treasury = "{contract} treasury()(uint256)"
owed = "{contract} owed()(uint256)\""""
