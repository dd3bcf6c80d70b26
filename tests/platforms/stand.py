"""A running platform, whichever it is: its profile, its chain, and the processes that serve it."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.codec import Entry
from fleet.chain.node.rpc import Rpc
from fleet.config import GasSection
from fleet.devnet.anvil import Anvil
from tests.platforms.front import ROUGH, Weather, front
from tests.platforms.profile import Profile
from tests.platforms.served import Served

WEB = ("site", "face", "proxy")
Fronts = Mapping[str, Weather]
"""By role (`site`, `face`, `proxy`, or `rpc` for the node): what stands in front of it."""
NO_FRONTS: Fronts = MappingProxyType({})


def everywhere(weather: Weather) -> Fronts:
    """The same in front of each part of the web, each with a seed of its own."""
    return {role: replace(weather, seed=seed) for seed, role in enumerate(WEB, 1)}


DISTURBED: Fronts = everywhere(ROUGH)


@dataclass(frozen=True, slots=True)
class Stand:
    """`rpc` speaks to the node itself, past any front."""

    name: str
    profile: Path
    """The TOML file that describes it, by way of its fronts."""
    chain: Anvil
    rpc: Rpc
    diamond: str
    web: Served
    """What serves its pages; kill, pause and restart it."""
    fronts: Mapping[str, Served]
    """By role. With one of its own in front of the proxy, killing that leaves the site up."""

    @property
    def data(self) -> dict[str, Any]:
        """The profile."""
        return tomllib.loads(self.profile.read_text("utf-8"))

    async def entries(self) -> list[Entry]:
        """The whole feedback log, as it stands on the chain."""
        log = FeedbackLog(self.rpc, self.diamond, GasSection())
        return await log.range(0, await log.count())

    async def offers(self, function: str) -> bool:
        """Whether the diamond has a facet for the function."""
        facet = await self.rpc.view(self.diamond, "facetAddress", FUNCTIONS[function].selector)
        return int(facet, 16) != 0


@asynccontextmanager
async def fronted(
    profile: Profile, fronts: Fronts, folder: Path
) -> AsyncIterator[tuple[Profile, dict[str, Served]]]:
    """The profile by way of relays of its own, which run until the end; by role as well."""
    async with AsyncExitStack() as stack:
        relays: dict[str, Served] = {}
        for role, weather in fronts.items():
            table = profile["chain"] if role == "rpc" else profile["web"]
            if role not in table:
                continue  # the platform is without it
            where = urlsplit(table[role])
            assert where.port is not None
            log = folder / f"front-{role}.log"
            relays[role] = await stack.enter_async_context(front(where.port, weather, log))
            table[role] = table[role].replace(where.netloc, f"127.0.0.1:{relays[role].port}", 1)
        yield profile, relays
