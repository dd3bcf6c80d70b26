"""How an agent is registered, on a real registry: each defect is seen, its twin is silent, scope stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from fleet.chain.node.rpc import Rpc
from fleet.config import Platform
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import deploy_registries
from fleet.devnet.surfaces.lodge import CARD, DEFECTS, FILE, PROOF, Lodge, open_lodge
from fleet.drivers.explore.agent.registry import make
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import ExplorerContext
from fleet.oracles.model import Facts
from fleet.personas.model import Step
from fleet.runs.call.guest_protocol import json_safe
from fleet.runs.context import guest_context
from fleet.runs.proof.candidates import answered
from sandbox.errors import Failure
from sandbox.spec import Mistake, as_record
from sandbox.tools import TOOLS
from sandbox.validate import build
from tests.drivers.mcp_visits import way_out

GRANTED = frozenset({"qa_registry", "qa_fetch", "qa_mcp", "qa_pay"})
SEEN = {
    "no-uri": ("registration-file", ""),
    "file-gone": ("registration-file", ""),
    "file-broken": ("registration-file", ""),
    "of-others": ("registration-names", "file"),
    "host-of-others": ("registration-names", "host"),
    "card-gone": ("registration-service", "A2A"),
    "card-broken": ("registration-service", "A2A"),
    "mcp-gone": ("registration-service", "MCP"),
    "page-gone": ("registration-service", "web"),
    "inactive": ("registration-inactive", "A2A"),
    "wallet-other": ("registration-wallet", ""),
    "wallet-none": ("registration-wallet", ""),
    "x402-denied": ("registration-x402", ""),
    "validation-of-others": ("registration-names", "validation registry"),
    "validation-misplaced": ("registration-names", "validation"),
}
"""By defect: the oracle, and the part of the place that tells it from others of its kind."""


@dataclass
class Looked:
    """What an explorer's questions showed."""

    found: set[tuple[str, str]] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lodge]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Anvil(tmp_path_factory.mktemp("chain") / "state.json")) as anvil,
        portal.wrap_async_context_manager(Rpc(anvil.url)) as rpc,
    ):
        yield Lodge(portal, rpc, portal.call(deploy_registries, rpc).identity)


def asked(platform: Platform, step: Step) -> dict[str, Any]:
    """One call, as its guest answers it."""
    spec, urls = TOOLS[step.tool], OwnUrls(platform)
    args = {name: urls.actual(one) if isinstance(one, str) else one for name, one in step.args.items()}
    assert spec.run is not None
    try:
        result = spec.run(build(spec.args, args, "/args"), guest_context(platform, "t0", {}, 20.0))
    except Mistake as mistake:
        result = spec.result(ok=False, error=str(mistake), error_class="bad_request")
    except Failure as failure:
        result = spec.result(ok=False, error=str(failure), error_class=failure.error_class)
    return dict(json_safe(as_record(result)))


def looked(platform: Platform) -> Looked:
    """What is found at the rung `observe`, by oracle and part of the place."""
    ground = ExplorerContext(platform=platform, tools=GRANTED, acts=False)
    explorer, seen = make(ground, Random(1), {}), Looked()
    with way_out(platform, "observe"):
        while questions := explorer.ask(48):
            for question in questions:
                results = [asked(platform, step) for step in question.steps]
                assert not [one for one in results if one["error_class"] in ("bad_request", "refused")]
                for one in answered(question.steps, results, Facts.of(platform)):
                    seen.found.add((one.oracle, one.sighting.where.get("claim", "")))
                explorer.learn(question, results)
                seen.steps += question.steps
    seen.left = {one.part: one.reason for one in explorer.left()}
    return seen


@pytest.mark.parametrize("inline", [False, True], ids=["on a page", "in its URI"])
def test_a_healthy_registration_is_looked_at_whole_and_nothing_is_found(
    registry: Lodge, inline: bool
) -> None:
    lodge = replace(registry, inline=inline)
    with open_lodge(lodge) as requests:
        seen = looked(lodge.profile())
    assert seen.found == set()
    assert {one.tool for one in seen.steps} == GRANTED
    paths = {CARD, PROOF, "/about", "/mcp", "/reports", "/.well-known/oauth-protected-resource/mcp"}
    assert set(requests) == paths | ({FILE} if not inline else set())
    (part,) = seen.left
    assert "169.254.169.254" in part
    assert seen.left[part] == "its host is not in this profile, and a registration adds none"


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_is_found_and_nothing_else(registry: Lodge, defect: str) -> None:
    lodge = replace(registry, defects=frozenset({defect}))
    with open_lodge(lodge):
        found = looked(lodge.profile()).found
    oracle, claim = SEEN[defect]
    assert {one for one, _ in found} == {oracle}
    assert not claim or (oracle, claim) in found
    if defect == "inactive":
        assert found == {(oracle, "A2A"), (oracle, "MCP")}


def test_what_the_profile_does_not_name_is_not_asked_whatever_a_registration_says(registry: Lodge) -> None:
    lodge = replace(registry)
    with open_lodge(lodge) as requests:
        elsewhere = {"site": "http://127.0.0.1:9", "hosts": ["127.0.0.1:9"]}
        whole = {"web": elsewhere, "mcp": {}, "payments": {}}
        seen = looked(lodge.profile(**whole))
        bare = looked(lodge.profile(mcp={}, payments={}))
    assert [step.tool for step in seen.steps] == ["qa_registry"]
    assert seen.left[f"the registration of agent {lodge.agent}"].startswith("its file is not on a host")
    assert "mcp.endpoints of the profile does not name it" in bare.left.values()
    assert not {"/mcp", "/reports"} & set(requests)
    assert "/about" in requests


def test_a_registration_is_of_the_profiles_own_agent_and_its_file_is_what_the_registry_says(
    registry: Lodge,
) -> None:
    lodge = replace(registry)
    with open_lodge(lodge) as requests:
        platform = lodge.profile()
        with way_out(platform, "observe"):

            def call(**args: object) -> Mapping[str, Any]:
                return asked(platform, Step(tool="qa_registry", args=args))

            assert call(agent=lodge.agent + 1)["error_class"] == "bad_request"
            moved = call(agent=lodge.agent, file="{site}/about")
            assert (moved["ok"], moved["file_read"]) == (False, False)
            assert call(agent=lodge.agent, file=f"{{site}}{FILE}")["names_back"] == "this"
        bare = lodge.profile(erc8004={"identity": lodge.identity, "agent": lodge.agent})
        with way_out(bare, "observe"):
            said = [
                asked(one, Step(tool="qa_registry", args={"agent": lodge.agent})) for one in (platform, bare)
            ]
        told = [(one["validates"], one.get("validations"), one["misplaced"]) for one in said]
        assert told == [("this", 1, []), ("", None, [])]
        assert "/order.json" not in requests
        unknown = lodge.profile(erc8004={"identity": lodge.identity, "agent": 10_000})
        assert looked(unknown).left == {
            "the registration of agent 10000": "the registry does not know the agent"
        }


def test_each_defect_of_the_lodge_has_its_expectation() -> None:
    assert set(SEEN) == set(DEFECTS)
