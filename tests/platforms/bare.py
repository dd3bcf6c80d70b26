"""A platform that no persona was written for: a small diamond, a static site, nothing else.

No proxy, no faces, no compiler, no token, no standing names, no owner's functions.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fleet.chain.node.rpc import Rpc
from fleet.devnet.anvil import CHAIN_ID, Anvil
from fleet.devnet.deploy import create_diamond
from tests.platforms.profile import Profile, written
from tests.platforms.served import Served, free_port
from tests.platforms.stand import NO_FRONTS, Fronts, Stand, fronted

FACETS = ("DiamondLoupeFacet", "FeedbackFacet", "RegistryFacet", "ReleaseFacet")
LEFT_OUT = frozenset(
    (
        "adminBurnNames",
        "adminResetAll",
        "clearFeedback",
        "setRegistrationCost",
        "supportsInterface",
        "treasuryBalance",
        "withdrawTreasury",
    )
)
"""Functions of those facets that need an owner, a token, or an initialiser."""
PAGES = Path(__file__).with_name("site")
NAME = "bare"
NOTHING: Mapping[str, Any] = MappingProxyType({})


def describe(rpc: str, diamond: str, site: str) -> Profile:
    """Its profile: what it does not have is not there."""
    return {"name": NAME, "chain": {"rpc": rpc, "id": CHAIN_ID, "diamond": diamond}, "web": {"site": site}}


def publish(folder: Path, rpc: str, diamond: str) -> Path:
    """Writes its pages, which say where the chain is."""
    folder.mkdir()
    for page in PAGES.iterdir():
        text = page.read_text("utf-8").replace("{rpc}", rpc).replace("{diamond}", diamond)
        (folder / page.name).write_text(text, "utf-8")
    return folder


@asynccontextmanager
async def bare(
    folder: Path, *, fronts: Fronts = NO_FRONTS, more: Mapping[str, Any] = NOTHING
) -> AsyncIterator[Stand]:
    """It runs on a new chain in `folder`; `more` are further tables of its profile, such as `targets`."""
    folder.mkdir(parents=True, exist_ok=True)
    async with Anvil(folder / "chain.json") as chain, Rpc(chain.url) as rpc:
        diamond = await create_diamond(rpc, FACETS, left_out=LEFT_OUT)
        port, pages = free_port(), publish(folder / "site", chain.url, diamond)
        words = (
            sys.executable,
            "-m",
            "http.server",
            str(port),
            "--bind",
            "127.0.0.1",
            "--directory",
            str(pages),
        )
        async with Served(words, port, folder / "site.log") as web:
            profile = describe(chain.url, diamond, web.url) | dict(more)
            async with fronted(profile, fronts, folder) as (seen, relays):
                path = folder / f"{NAME}.toml"
                path.write_text(written(seen), "utf-8")
                yield Stand(NAME, path, chain, rpc, diamond, web, relays)
