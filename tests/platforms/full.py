"""The full devnet, or the devnet without some of its parts.

async with full(folder) as stand: …
async with without("proxy", folder) as stand: …
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from fleet.chain.keys import write_new
from fleet.chain.node.digest import metadata_key
from fleet.chain.node.rpc import Rpc
from fleet.devnet import artifact
from fleet.devnet.defects import PLATFORM_IDS
from fleet.devnet.deploy import Deployment, deploy
from fleet.devnet.devnet import METER_KEY, Devnet
from fleet.devnet.node import invoke
from fleet.devnet.seeded_names import register_seeded_names
from tests.platforms.profile import lessened, slowed, written
from tests.platforms.served import Served, free_port
from tests.platforms.stand import NO_FRONTS, Fronts, Stand, fronted

FACETS = {"credits": "CreditFacet", "main": "MainIdentityFacet"}
PARTS = (
    "site",
    "faces",
    "proxy",
    "calls",
    "compiler",
    "loader",
    "codes",
    "metadata",
    "credits",
    "main",
    "targets",
)
"""What `without` can take away. A profile has no key for a facet: it is silent about one that is gone."""


class Reduced(Devnet):
    """A devnet without the parts in `gone`, whose platform process can be killed, paused and restarted."""

    web: Served
    deployment: Deployment

    def __init__(self, folder: Path, gone: frozenset[str], defects: Iterable[str]) -> None:
        super().__init__(folder, keys=folder / "keys", defects=defects)
        self.gone = gone

    async def _deploy(self, rpc: Rpc) -> Deployment:
        lost = {FACETS[part] for part in self.gone & FACETS.keys()}
        facets = [facet for facet in artifact.FACETS if facet not in lost]
        self.deployment = at = await deploy(rpc, facets=facets)
        if "targets" in self.gone:
            return at
        await register_seeded_names(rpc, at.diamond, at.token, at.deployer)
        if "site" in self.gone:  # its page links to documents that are not there
            docs = await rpc.view(at.diamond, "idOfName", "docs")
            key = metadata_key("localharness.public_face")
            await invoke(rpc, at.deployer, at.diamond, "setMetadata", docs, key, b"directory")
        return at

    async def _serve(self, stack: AsyncExitStack, deployment: Deployment) -> str:
        key, port = self.folder / "meter.key", free_port()
        write_new(key, METER_KEY.encode() + b"\n")
        url = f"http://127.0.0.1:{port}"
        words = (
            sys.executable,
            "-m",
            "tests.platforms.server",
            ",".join(sorted(self.gone)),
            "--rpc",
            self.chain.url,
            "--diamond",
            deployment.diamond,
            "--meter-key-file",
            str(key),
            "--port",
            str(port),
            "--public-url",
            url,
            "--defects",
            ",".join(sorted(self.defects & PLATFORM_IDS)),
        )
        self.web = await stack.enter_async_context(Served(words, port, self.folder / "platform.log"))
        return url

    def _describe(self, deployment: Deployment) -> str:
        return written(lessened(tomllib.loads(super()._describe(deployment)), self.gone))


@asynccontextmanager
async def full(
    folder: Path,
    *,
    gone: frozenset[str] = frozenset(),
    defects: Iterable[str] = (),
    fronts: Fronts = NO_FRONTS,
    compiler_start_s: float = 0.0,
    burn: bool = False,
) -> AsyncIterator[Stand]:
    """The devnet on a new chain in `folder`, clean unless `defects` are named.

    Args:
        gone: which of PARTS it is without.
        fronts: relays between the fleet and it, by role.
        compiler_start_s: seconds that its compiler and its loader take to start.
        burn: whether they compute meanwhile instead of sleeping.
    """
    if unknown := gone - set(PARTS):
        raise ValueError(f"unknown parts: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    async with Reduced(folder, gone, defects) as devnet, Rpc(devnet.chain.url) as rpc:
        profile = tomllib.loads(devnet.profile.read_text("utf-8"))
        if compiler_start_s:
            profile = slowed(profile, folder / "toolchain", compiler_start_s, burn=burn)
        async with fronted(profile, fronts, folder) as (seen, relays):
            devnet.profile.write_text(written(seen), "utf-8")
            at = devnet.deployment.diamond
            yield Stand("devnet", devnet.profile, devnet.chain, rpc, at, devnet.web, relays)


def without(part: str, folder: Path, *, fronts: Fronts = NO_FRONTS) -> AbstractAsyncContextManager[Stand]:
    """The clean devnet without one of PARTS."""
    return full(folder, gone=frozenset((part,)), fronts=fronts)
