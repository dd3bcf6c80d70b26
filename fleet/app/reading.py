"""A world that only reads: log, journal and personas, without a lock, a jail or a key that signs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fleet.app.journal import open_journal
from fleet.app.persona_sets import roster
from fleet.chain.keys import address_of, load_key
from fleet.chain.log.choice import log_of
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import FeedbackPort
from fleet.clock import Clock, SystemClock
from fleet.config import FleetConfig, Platform, key_file, load_fleet, load_platform
from fleet.errors import ConfigError
from fleet.findings.redact import Redactor
from fleet.personas.load import LoadedPersona
from fleet.store.journal import Journal
from fleet.triage.triage_pass import TRIAGE, pass_over


@dataclass(frozen=True, slots=True)
class ReadingChain:
    """The log without a signer, and the address under which this fleet posts."""

    log: FeedbackPort
    identity: str
    signer: None = None


class EveryRun:
    """A person owns every run that has ended."""

    async def mine(self, run: str, /) -> bool:  # noqa: ARG002  the port's
        return True


@dataclass(frozen=True, slots=True)
class ReadingWorld:
    """A TriageWorld that posts nothing and a FixWorld that can look and withdraw, beside the daemon."""

    state: Path
    config: FleetConfig
    platform: Platform
    journal: Journal
    chain: ReadingChain
    clock: Clock = field(default_factory=SystemClock)
    redactor: Redactor = field(default_factory=Redactor)
    source: EveryRun = field(default_factory=EveryRun)
    item: str = ""

    @property
    def personas(self) -> Mapping[str, LoadedPersona]:
        """Every valid persona, read when asked for: a list that is current needs none."""
        return roster()[0]

    def folder(self, run: str) -> Path:
        return self.state / "runs" / run


@asynccontextmanager
async def reading_world(
    state: Path, platform: str | None = None, *, ask: bool = True
) -> AsyncIterator[ReadingWorld]:
    """Open it; raises ConfigError, UsageError, Unreachable, WrongTarget, TryAgain.

    With `ask` False no node is asked whether it is the platform's: for what needs the mirror alone.
    """
    config = load_fleet()
    profile, _ = load_platform(platform or config.platform, state)
    identity = address_of(load_key(key_file(config, "identity", state))) if profile.signs else ZERO_ADDRESS
    async with Rpc(profile.chain.rpc) as rpc:
        if ask:
            await rpc.check_target(profile)
        log = log_of(profile, state, rpc)
        async with await open_journal(state) as journal:
            yield ReadingWorld(state, config, profile, journal, ReadingChain(log, identity))


async def triage_again(state: Path, platform: str) -> None:
    """Write the worklist files anew from the mirror, with every decision; posts nothing and asks no node."""
    async with reading_world(state, platform, ask=False) as world:
        personas = world.personas
        if TRIAGE not in personas:
            raise ConfigError(f"no persona named {TRIAGE}", remedy="fleet personas list")
        await pass_over(world, personas[TRIAGE], post=False, ask=False)
