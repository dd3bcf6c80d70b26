"""The seeded defects: their files, and that each probe finds its own defect and nothing else."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from fleet.chain.keys import Secret
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform, parse
from fleet.devnet.anvil import Anvil
from fleet.devnet.defects import ALL_IDS, COMPILER_IDS, DEFECTS, FOLDER, PLATFORM_IDS, Defect, chosen, load
from fleet.devnet.deploy import deploy_or_load
from fleet.devnet.devnet import CALLED, COMPILER, METER_KEY, STATED
from fleet.devnet.platform.app import create_app
from fleet.devnet.platform.rpc_chain import RpcChain
from fleet.devnet.platform.site import Settings, Site
from fleet.errors import ConfigError
from fleet.personas.model import Probe
from fleet.runs.proof.attempt import Attempt, attempt
from sandbox.spec import Effect
from sandbox.tools import TOOLS
from tests.devnet.platform_server import serve
from tests.devnet.probing import Keys, ProbingSession, personas

PERSONAS = personas()
PROBES = {f"{persona.name}/{probe.id}": probe for persona in PERSONAS.values() for probe in persona.probe}
IDS = sorted(ALL_IDS)


# the files ----------------------------------------------------------------------------------------


def test_there_are_twenty_one_defects_in_two_parts() -> None:
    assert (len(ALL_IDS), len(PLATFORM_IDS), len(COMPILER_IDS)) == (21, 16, 5)
    assert PLATFORM_IDS | COMPILER_IDS == ALL_IDS


def test_a_defect_agrees_with_the_probe_that_finds_it() -> None:
    for defect in DEFECTS:
        persona = PERSONAS[defect.probe.partition("/")[0]]
        probe = PROBES[defect.probe]
        said = (probe.id, probe.severity, probe.surface or persona.surface, probe.finding)
        assert said == (defect.id, defect.severity, defect.surface, defect.title)


def test_what_acts_is_found_only_at_exercise() -> None:
    for defect in DEFECTS:
        acts = any(TOOLS[step.tool].effect is Effect.ACT for step in PROBES[defect.probe].steps)
        assert acts == (defect.rung == "exercise"), defect.id


def test_choosing_defects() -> None:
    assert chosen("all") == ALL_IDS
    assert chosen("none") == chosen("") == frozenset()
    assert chosen("method-405, stream-edge") == {"method-405", "stream-edge"}
    with pytest.raises(ConfigError, match="no such defect: nonsense"):
        chosen("method-405,nonsense")


def copy_of(defect: str, target: Path, more: str = "") -> Path:
    target.write_text(more + (FOLDER / f"{defect}.toml").read_text("utf-8"), "utf-8")
    return target


def test_duplicates_wrong_names_and_unknown_keys_are_refused(tmp_path: Path) -> None:
    good = copy_of("method-405", tmp_path / "method-405.toml")
    assert [defect.id for defect in load([good])] == ["method-405"]
    (tmp_path / "twice").mkdir()
    again = copy_of("method-405", tmp_path / "twice" / "method-405.toml")
    with pytest.raises(ConfigError, match="'method-405' is used twice"):
        load([good, again])
    with pytest.raises(ConfigError, match="is not the file's name"):
        load([copy_of("method-405", tmp_path / "other.toml")])
    with pytest.raises(ConfigError, match="wrong: unknown key; valid keys here: effect, id, modelled_on"):
        load([copy_of("method-405", tmp_path / "method-405.toml", "wrong = 1\n")])


# the personas -------------------------------------------------------------------------------------


def test_the_shipped_personas() -> None:
    looking = [
        "qa-fuzz",
        "qa-mcp",
        "qa-pay",
        "qa-perf",
        "qa-registry",
        "qa-retest",
        "qa-security",
        "qa-smoke",
    ]
    assert sorted(PERSONAS) == sorted([*looking, "qa-ux", "qa-watch", "qa-fix", "qa-triage"])
    triage = PERSONAS["qa-triage"]
    assert (triage.driver, triage.tools, triage.probe) == ("triage", (), ())
    order = ["security", "on-chain", "compiler", "ux", "perf"]
    assert sorted(triage.weights, key=lambda surface: -triage.weights[surface]) == order


def test_a_persona_grants_nothing_beyond_its_table() -> None:
    granted = {name: set(persona.tools) for name, persona in PERSONAS.items()}
    assert granted["qa-security"] == {"qa_account", "qa_browse", "qa_call", "qa_chain", "qa_fetch"}
    assert granted["qa-fuzz"] == {"qa_compile", "qa_fuzz", "qa_publish", "qa_call", "qa_chain"}
    assert granted["qa-ux"] == {"qa_call", "qa_fetch", "qa_browse"}
    assert not any("qa_report" in tools for tools in granted.values())


def test_a_budget_holds_every_probe_found_and_verified_three_times() -> None:
    for persona in PERSONAS.values():
        costs = [TOOLS[step.tool].cost for probe in persona.probe for step in probe.steps]
        assert persona.budget is not None
        assert persona.budget.calls >= 4 * sum(cost.calls for cost in costs)
        assert persona.budget.writes >= 4 * sum(cost.writes for cost in costs)
        assert persona.budget.reports >= sum(probe.id in ALL_IDS for probe in persona.probe)


def test_only_standing_agents_and_own_names_are_called() -> None:
    targets = {
        str(step.args.get("target") or step.args.get("name"))
        for probe in PROBES.values()
        for step in probe.steps
        if TOOLS[step.tool].effect is Effect.ACT
    }
    assert targets == {"{target:agent}", "{target:assistant}", "{name}"}


# the whole way ------------------------------------------------------------------------------------


@dataclass
class Bench:
    """One chain and one platform whose switches can be turned between probes."""

    rpc: Rpc
    site: Site
    platform: Platform

    def elsewhere(self, url: str) -> Bench:
        """The same chain with another web."""
        web = self.platform.web.model_copy(update={"site": url, "proxy": url, "face": url + "/face/{name}/"})
        return Bench(self.rpc, self.site, self.platform.model_copy(update={"web": web}))

    async def attempt(self, probe: Probe, defects: frozenset[str]) -> Attempt:
        """One attempt under fresh keys, as in a run of its own, on a fresh block."""
        self.site.defects = defects
        compiler = (sys.executable, "-I", "-B", str(COMPILER / "rustlite"))
        switches = ("--defects", ",".join(sorted(defects & COMPILER_IDS)))
        session = ProbingSession(self.platform, Keys(self.rpc), (*compiler, *switches))
        snapshot = await self.rpc.call("evm_snapshot")
        try:
            return await attempt(session, probe)
        finally:
            await self.rpc.call("evm_revert", [snapshot])


@pytest.fixture(scope="module")
async def bench(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    state = tmp_path_factory.mktemp("chain") / "chain.json"
    async with Anvil(state) as anvil, Rpc(anvil.url) as rpc:
        deployment = await deploy_or_load(rpc, state.with_name("deployment.json"))
        await rpc.call("anvil_autoImpersonateAccount", [True])
        app = create_app(
            RpcChain(Rpc(anvil.url), deployment.diamond, Secret(bytes.fromhex(METER_KEY))),
            frozenset(),
            Settings(),
        )
        with serve(app) as url:
            called = ", ".join(f'{key} = "{value}"' for key, value in CALLED.items())
            text = f"""
            name = "devnet"
            chain = {{ rpc = "{anvil.url}", id = {deployment.chain_id}, diamond = "{deployment.diamond}" }}
            web = {{ site = "{url}", face = "{url}/face/{{name}}/", proxy = "{url}", {called} }}
            compiler = {{ command = ["rustlite"], loader = ["rustlite"], language = "rustlite" }}
            {STATED}"""
            yield Bench(rpc, app.state.site, parse(Platform, text, file="devnet"))


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.parametrize("probe", sorted(PROBES))
async def test_a_clean_platform_is_silent(bench: Bench, probe: str) -> None:
    done = await bench.attempt(PROBES[probe], frozenset())
    assert (done.state, done.reason) == ("healthy", ""), done.results


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.parametrize("probe", sorted(PROBES))
async def test_with_every_defect_on_each_is_found_by_its_own_probe_alone(bench: Bench, probe: str) -> None:
    done = await bench.attempt(PROBES[probe], ALL_IDS)
    expected = "finding" if PROBES[probe].id in ALL_IDS else "healthy"
    assert (done.state, done.reason) == (expected, ""), done.results


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.id)
async def test_nothing_but_its_defect_trips_a_probe(bench: Bench, defect: Defect) -> None:
    done = await bench.attempt(PROBES[defect.probe], ALL_IDS - {defect.id})
    assert (done.state, done.reason) == ("healthy", ""), done.results


async def ill(scope: Scope, receive: Receive, send: Send) -> None:
    """A platform that answers everything with a 503 page."""
    if scope["type"] == "http":
        await PlainTextResponse("upstream is down", 503)(scope, receive, send)


@pytest.mark.anyio
@pytest.mark.devnet
async def test_an_outage_is_not_taken_for_a_defect(bench: Bench) -> None:
    with serve(ill) as url:
        sick = bench.elsewhere(url)
        looks = {d.id: await sick.attempt(PROBES[d.probe], frozenset()) for d in DEFECTS}
    states = {name: look.state for name, look in looks.items()}
    asked = {d.id for d in DEFECTS if "qa_fetch" in {step.tool for step in PROBES[d.probe].steps}}
    assert {name for name, state in states.items() if state == "inconclusive"} >= asked
    assert set(states.values()) == {"healthy", "inconclusive"}, looks["gas-quote-low"].reason


@pytest.mark.anyio
@pytest.mark.devnet
async def test_a_platform_that_is_not_there_is_no_finding_at_all(bench: Bench) -> None:
    gone = bench.elsewhere("http://127.0.0.1:9")
    for name, probe in PROBES.items():
        if any(step.tool in ("qa_fetch", "qa_call") for step in probe.steps):
            assert (await gone.attempt(probe, frozenset())).state == "inconclusive", name
