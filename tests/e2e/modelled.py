"""A whole fleet with a scripted model: the real chain, jails, gate and signer; one world for a module."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fleet.gate.dial import DIAL
from fleet.gate.model import Rung
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.run import RunReport, fire
from tests.acceptance.conftest import House, persona, probe, step
from tests.doubles.model import Say, Script, ScriptedModel, serve_model
from tests.doubles.model_scripts import always

KEY = "sk-not-a-real-key-0123456789"
TOOLS = '["qa_fetch", "qa_compile", "qa_chain", "qa_create", "qa_publish", "qa_call", "qa_report"]'
LIMITS = {"calls": 40, "writes": 12, "reports": 4, "tokens": 2_000_000}
HEALTHY = probe("healthy", step("qa_fetch", url="{site}/"), expect="result.status == 200")
LEAK = probe(
    "os-error-leak",
    step("qa_fetch", url="{face:docs}app.wasm"),
    expect='!result.text.contains("(os error ")',
)


def front(driver: str, **more: str) -> str:
    """The head of a persona that may do nearly everything, within LIMITS."""
    limits = ", ".join(f"{unit} = {number}" for unit, number in LIMITS.items())
    budget = f'{limits}, wall = "2m"' + (f", usd = {more['usd']}" if "usd" in more else "")
    policy = more.get("policy", 'max_turns_per_run = 14, turn_timeout = "60s"')
    return f'tools = {TOOLS}\nbudget = {{ {budget} }}\ndriver = "{driver}"\npolicy = {{ {policy} }}'


@dataclass(slots=True)
class Stand:
    """One open world whose model says what the script of the moment tells it."""

    house: House
    world: FleetContext
    model: ScriptedModel
    root: Path

    def persona(self, name: str, driver: str, *probes: str, **more: str) -> LoadedPersona:
        return persona(self.root, front(driver, **more), *probes, name=name)

    async def run(self, one: LoadedPersona, script: Script | None = None) -> RunReport:
        """Fire it, and look at what it left behind: nothing, whatever the script did."""
        self.model.script = script or always(Say())
        self.model.asked.clear()
        self.house.heard.clear()
        self.house.head = int(await self.house.rpc.call("eth_blockNumber", []), 16)
        report = await fire(self.world, one)
        await self._left_nothing(report)
        return report

    async def _left_nothing(self, report: RunReport) -> None:
        world, folder = self.world, self.world.folder(report.run)
        assert report.settled
        records = [json.loads(line) for line in (folder / "trajectory.jsonl").read_text().splitlines()]
        kinds = [one["type"] for one in records]
        assert (kinds[0], kinds[-1]) == ("header", "footer")
        assert (kinds.count("header"), kinds.count("footer")) == (1, 1)
        assert (records[-1]["outcome"], records[-1]["detail"]) == (report.outcome, report.detail)
        for effect in await world.journal.effects(report.run, ["name", "key", "stipend"]):
            assert effect.state in ("released", "done", "failed"), effect
        keys = folder / "keys"
        assert not keys.exists() or not list(keys.iterdir())
        spent = await world.journal.spent(report.run)
        for unit, limit in LIMITS.items():
            assert spent.get(unit, 0) <= limit, unit
        assert _holders(world.state) == [world.state / "keys" / "model"]
        assert (await world.jail.probe()).tier

    def denied(self) -> list[tuple[str, str]]:
        """Refusals on record, in order: tool and rule."""
        return [(event.tool, event.rule) for event in self.house.said("gate.denied")]

    def requested(self) -> list[tuple[str, dict[str, Any]]]:
        """What was let through, in order."""
        return [(event.tool, event.args) for event in self.house.said("tool.requested")]


def _holders(state: Path) -> list[Path]:
    """Files under a state directory, and command lines of processes, that hold the model's key."""
    files = [path for path in state.rglob("*") if path.is_file() and not path.is_symlink()]
    lines = [path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [path for path in (*files, *lines) if KEY.encode() in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@asynccontextmanager
async def open_stand(house: House, root: Path) -> AsyncIterator[Stand]:
    """At the rung `exercise`, with a key of the model's, and prices."""
    state = await house.state(root, rung=Rung.EXERCISE)
    key = state / "keys" / "model"
    key.touch(mode=0o600)
    key.write_text(KEY)
    async with serve_model(always(Say())) as model:
        with pytest.MonkeyPatch.context() as patch:
            prices = '{ input = "3.00", output = "15.00" }'
            where = f'name = "openai:scripted", base_url = "{model.url}"'
            patch.setenv("QA_FLEET_MODEL", f"{{ {where}, max_tokens = 64, prices = {prices} }}")
            async with house.world(state) as world:
                yield Stand(house, world, model, root)
        assert (state / DIAL).read_text()
        assert not os.path.lexists(state / "STOP")
