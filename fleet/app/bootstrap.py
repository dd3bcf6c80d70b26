"""Locks a state directory, and starts the jail's self-check while everything else is loading.

The self-check mostly waits for other processes, and the libraries of a run take longer to load: so this
module imports only what a jail needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from fleet.app.lock import only_one
from fleet.app.storage import require_encrypted
from fleet.clock import Clock, SystemClock
from fleet.config import FleetConfig, Platform, load_fleet, load_platform
from fleet.config.files import beside, fetched
from fleet.errors import ConfigError
from fleet.gate.stop import LOOKS, fence_failed
from fleet.jail.choice import open_jail, reap
from fleet.jail.locate import browser_rules
from fleet.jail.model import Image, Jail, Tier
from fleet.jail.selfcheck import leaks, require

SPOOL = "jails"
POOL = 2
"""Warm jails, with imports done: one per core of the smallest machine."""


GRACE_S = 20.0


@dataclass(frozen=True, slots=True)
class Options:
    """Start options of the resident service."""

    state: Path
    folders: tuple[Path, ...]
    """Of persona files; of two files of one name that of the later folder counts."""
    platform: str | None = None
    grace_s: float = GRACE_S
    port: int | None = None
    clock: Clock = field(default_factory=SystemClock)
    """Not a command-line option: a soak test sets a wrong clock."""

    @property
    def page(self) -> str:
        """The address of the pages; "" without a port."""
        return f"http://127.0.0.1:{self.port}/" if self.port else ""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The configuration and the jail; run nothing in the jail before `proven` has returned."""

    state: Path
    home: Path
    """Where keys, accounts and the log are: `state`, but for a trial beside a daemon."""
    config: FleetConfig
    platform: Platform
    profile: Path
    jail: Jail
    shown: Image
    _proof: asyncio.Task[Tier]

    def other_jail(self, image: Image) -> Jail:
        """Jails of another image by the same backend, none of them made before it is needed."""
        return open_jail(self.config.jail, image, pool=0, spool=self.state / SPOOL)

    async def proven(self) -> Tier:
        """Wait for the self-check and return the tier that it proved; JailError when it failed.

        A jail that let something out sets STOP: nothing may start until a person has looked.
        """
        tier = await self._proof
        if out := leaks(tier):
            fence_failed(self.state, "jail", f"its self-check, {'; '.join(out)}"[:500], SystemClock())
        require(tier)
        return tier


def image(platform: Platform, profile: Path) -> Image:
    """Mounts of a jail besides the guest: the platform's compiler, if it has one, and a browser's rules."""
    root = platform.compiler.root
    mounts = ((beside(profile, root), "tc"),) if root else ()
    return Image(mounts=(*mounts, *browser_rules(fetched())))


def trial_folder(state: Path) -> Path:
    """The state directory of trials beside a daemon: among the looks, which the STOP of `state` pauses."""
    return state / LOOKS / "trial"


@asynccontextmanager
async def fenced(home: Path, platform: str | None = None, *, apart: bool = False) -> AsyncIterator[Bootstrap]:
    """Hold the state directory's lock, end jails of an earlier process, start the self-check.

    `apart`: that of the folder for trials instead, beside a daemon. Raises ConfigError, JailError, TryAgain.
    """
    config = load_fleet()
    try:
        profile, path = load_platform(platform or config.platform, home)
    except ConfigError as error:
        from fleet.runs.signed_scope import note_refused  # no start needs it

        if home.is_dir():
            note_refused(home, platform or config.platform, error)
        raise
    require_encrypted(config.keep, home)
    state = trial_folder(home) if apart else home
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with only_one(state):
        spool = state / SPOOL
        spool.mkdir(mode=0o700, exist_ok=True)
        await reap(config.jail, spool)
        shown = image(profile, path)
        jail = open_jail(config.jail, shown, pool=POOL, spool=spool)
        proof = asyncio.create_task(jail.probe())
        try:
            yield Bootstrap(state, home, config, profile, path, jail, shown, proof)
        finally:
            proof.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.gather(proof, return_exceptions=True)
                await jail.aclose()
