"""`fleet run PERSONA --json` as a user runs it: a process, an exit code, and the log after it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread

from fleet.chain.keys import create_key
from fleet.chain.node.codec import Entry
from fleet.clock import SystemClock
from fleet.devnet.devnet import INITIAL_WEI
from fleet.devnet.node import fund
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from tests.cli_process import run_fleet
from tests.platforms.stand import Stand


@dataclass(frozen=True, slots=True)
class Fired:
    """What one firing came to."""

    code: int
    out: str
    err: str
    entries: tuple[Entry, ...]
    """What stands on the log now and did not before."""

    @property
    def data(self) -> Any:
        """The report."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Home:
    """A fleet's own place: state directory and configuration, pointed at one platform."""

    state: Path
    config: Path

    def environment(self) -> dict[str, str]:
        """All that a command of this fleet gets."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.state),
            "STATE_DIRECTORY": str(self.state),
            "QA_FLEET_EXPLORE": os.environ.get("QA_FLEET_EXPLORE", "false"),
            "CONFIGURATION_DIRECTORY": str(self.config),
        }

    def adopt(self, stand: Stand) -> None:
        """Takes the platform's profile as it is now."""
        (self.config / "platforms").mkdir(exist_ok=True)
        (self.config / "platforms" / f"{stand.name}.toml").write_bytes(stand.profile.read_bytes())


async def home(folder: Path, stand: Stand, config: str = "") -> Home:
    """A new fleet in `folder`, with funded keys and the platform's profile; `config`: more of fleet.toml."""
    made = Home(folder / "state", folder / "config")
    for path in (made.state, made.state / "keys", made.config):
        path.mkdir(mode=0o700, parents=True)
    for role in ("identity", "sponsor"):
        await fund(stand.rpc, create_key(made.state / "keys" / role), INITIAL_WEI)
    (made.config / "fleet.toml").write_text(f'platform = "{stand.name}"\n{config}', "utf-8")
    made.adopt(stand)
    return made


async def fire(
    persona: str,
    stand: Stand,
    at: Home,
    *,
    rung: Rung = Rung.OBSERVE,
    timeout_s: float = 600,
    words: Sequence[str] = (),
    env: Mapping[str, str] = {},
) -> Fired:
    """One firing at a rung. The process is killed and TimeoutExpired raised when it takes longer."""
    write_dial(at.state, rung, "a test of the platforms", "test", SystemClock())
    before = await stand.entries()
    done = await anyio.to_thread.run_sync(
        lambda: run_fleet(
            *("run", persona, "--json", *words), timeout=timeout_s, env=at.environment() | dict(env)
        )
    )
    after = await stand.entries()
    return Fired(done.returncode, done.stdout, done.stderr, tuple(after[len(before) :]))
