"""The whole product on a real chain: gate, signer, broker and jail as the commands wire them."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fleet.app.persona_sets import roster
from fleet.app.wiring import open_world
from fleet.chain.keys import address_of, load_key
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.abi import BY_SELECTOR
from fleet.chain.node.rpc import Rpc
from fleet.clock import SystemClock
from fleet.config import Platform, parse
from fleet.devnet.defects import ALL_IDS
from fleet.devnet.devnet import Devnet
from fleet.devnet.node import fund
from fleet.events.model import Event
from fleet.events.stream import Reader
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext

GOOD = "fn frame(t: i32) -> i32 { t + 1 }"


@dataclass(frozen=True, slots=True)
class Signed:
    """One transaction as the chain has it: `function` is "" for a transfer of value."""

    sender: str
    function: str
    nonce: int


@dataclass(slots=True)
class House:
    """One devnet; every test gets a state directory with keys of its own on it."""

    devnet: Devnet
    rpc: Rpc
    head: int = 0
    """Block at which the present test began."""
    heard: list[Event] = field(default_factory=list)

    async def state(self, root: Path, *changes: tuple[str, str], rung: Rung = Rung.EXERCISE) -> Path:
        """A fresh state directory whose profile is the devnet's, with some of its text replaced."""
        state = root / "state"
        (state / "devnet").mkdir(parents=True)
        (state / "keys").mkdir(mode=0o700)
        state.chmod(0o700)
        profile = self.devnet.profile.read_text()
        for old, new in changes:
            assert old in profile, old
            profile = profile.replace(old, new)
        (state / "devnet" / "devnet.toml").write_text(profile)
        for name in ("identity", "sponsor"):
            path = state / "keys" / name
            path.write_text(os.urandom(32).hex())
            path.chmod(0o600)
            await fund(self.rpc, address_of(load_key(path)), 10**21)
        write_dial(state, rung, "a test", "test", SystemClock())
        return state

    @asynccontextmanager
    async def world(
        self, state: Path, *personas: LoadedPersona, watch: Reader | None = None
    ) -> AsyncIterator[FleetContext]:
        """The world as `fleet run` opens it; `heard` is everything its runs say."""
        self.head = int(await self.rpc.call("eth_blockNumber", []), 16)
        self.heard.clear()
        roll = {one.persona.name: one for one in personas}
        readers = (self.heard.append, *((watch,) if watch else ()))
        async with open_world(state, personas=roll, platform="devnet", watch=readers) as world:
            yield replace(world, spread_s=0.0, patience_s=1.0)

    async def signed(self) -> list[Signed]:
        """Every transaction since the world was opened."""
        last = int(await self.rpc.call("eth_blockNumber", []), 16)
        found = []
        for number in range(self.head + 1, last + 1):
            block: Any = await self.rpc.call("eth_getBlockByNumber", [hex(number), True])
            for tx in block["transactions"]:
                function = BY_SELECTOR.get(bytes.fromhex(tx["input"][2:10]))
                found.append(Signed(tx["from"], function.name if function else "", int(tx["nonce"], 16)))
        return found

    async def tools_signed(self) -> list[str]:
        """What throwaway keys signed for tools, clean-up left out, in order."""
        ours = ("register", "setMetadata", "approve", "claimDaily", "submitFeedback")
        return [tx.function for tx in await self.signed() if tx.function in ours]

    async def entry(self, index: int) -> str:
        """Text of one entry of the log."""
        profile = parse(Platform, self.devnet.profile.read_text(), file="devnet.toml")
        (entry,) = await FeedbackLog(self.rpc, profile.chain.diamond, profile.gas).range(index, 1)
        return entry.text

    def said(self, kind: str) -> list[Any]:
        """The events of one type, in order."""
        return [event for event in self.heard if event.type == kind]


def persona(root: Path, front: str, *probes: str, name: str = "qa-row") -> LoadedPersona:
    """One small persona by the real loader; each probe is the TOML of its table."""
    folder = root / "personas"
    folder.mkdir(exist_ok=True)
    table = "\n".join(f"[[probe]]\n{probe}" for probe in probes)
    (folder / f"{name}.md").write_text(
        f'+++\nname = "{name}"\nsurface = "ux"\n{front}\n{table}\n+++\nA row.\n'
    )
    found, errors = roster(folder)
    assert not errors, errors
    return found[name]


def probe(id_: str, *steps: str, expect: str, severity: str = "low") -> str:
    """The TOML of one probe; its finding is named after it."""
    calls = ", ".join(steps)
    return (
        f'id = "{id_}"\nseverity = "{severity}"\nsteps = [{calls}]\n'
        f"expect = '{expect}'\nfinding = \"finding of {id_}\"\n"
    )


def step(tool: str, **args: str | list[str]) -> str:
    """The TOML of one step; JSON's strings and arrays are TOML's too."""
    inner = ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in args.items())
    return f'{{ tool = "{tool}", args = {{ {inner} }} }}'


def times(one: LoadedPersona, count: int) -> LoadedPersona:
    """The same persona with its first probe so many times: files refuse twins, a model may insist."""
    first = one.persona.probe[0]
    probes = tuple(first.model_copy(update={"id": f"{first.id}-{n}"}) for n in range(count))
    return replace(one, persona=one.persona.model_copy(update={"probe": probes}))


CREATE = step("qa_create", name="{name}")


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[House]:
    async with (
        Devnet(folder / "devnet", keys=folder / "keys", defects=ALL_IDS) as devnet,
        Rpc(devnet.chain.url) as rpc,
    ):
        yield House(devnet, rpc)


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("house")) as opened:
        yield opened
