"""The explorer of agents on the devnet: silent on the clean one, and each defect of an agent is found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random

import pytest

from fleet.drivers.explore.agent.explorer import make
from fleet.drivers.explore.port import ExplorerContext
from fleet.drivers.session import OUR_FAILURES, cause_of
from fleet.oracles.model import Facts
from fleet.runs.proof.candidates import Candidate, answered
from tests.devnet.probing import Keys, ProbingSession
from tests.devnet.test_defects import Bench, bench

__all__ = ["bench"]
pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


async def explored(at: Bench, defects: frozenset[str], calls: int) -> tuple[dict[str, Candidate], list[str]]:
    """What the oracles say of the explorer's questions, by signature, and every message asked."""
    at.site.defects = defects
    platform = at.platform.model_copy(update={"call_targets": ("claude", "docs")})
    ground = ExplorerContext(platform=platform, tools=frozenset({"qa_call"}), acts=True)
    explorer, session = make(ground, Random("s"), {}), ProbingSession(platform, Keys(at.rpc), ())
    found: dict[str, Candidate] = {}
    asked: list[str] = []
    while len(asked) < calls and (questions := explorer.ask(min(48, calls - len(asked)))):
        for question in questions:
            results = []
            for step in question.steps:
                asked.append(f"{step.args.get('target')}: {step.args}")
                results.append((await session.call(step.tool, step.args)).result)
                if cause_of(results[-1]) in OUR_FAILURES:
                    break
            for one in answered(question.steps[: len(results)], results, Facts.of(platform)):
                found.setdefault(one.sighting.signature, one)
            explorer.learn(question, results)
    return found, asked


def titles(found: Sequence[Candidate]) -> list[str]:
    return [f"{one.oracle}: {one.sighting.title}" for one in found]


async def test_the_clean_devnet_shows_nothing_over_the_whole_breadth(bench: Bench) -> None:
    found, asked = await explored(bench, frozenset(), 10_000 if "WHOLE" in os.environ else 300)
    assert titles(list(found.values())) == []
    assert len(asked) > 200


AGENTS = {
    "charge-before-validate": "paid-refusal",
    "continuation-loop": "turns",
    "destructive-tool": "stranger-acts",
    "lying-success": "not-read-back",
    "spoofed-from": "sender-claimed",
    "stream-edge": "stream-broken",
}


async def test_each_defect_of_an_agent_is_found_within_120_calls(bench: Bench) -> None:
    found, _ = await explored(bench, frozenset(AGENTS), 120)
    said = titles(list(found.values()))
    assert {one.oracle for one in found.values()} == set(AGENTS.values()), said


async def test_an_agent_that_says_nothing_when_it_is_asked_for_help_is_found_at_once(bench: Bench) -> None:
    found, _ = await explored(bench, frozenset({"empty-reply"}), 6)
    assert {one.oracle for one in found.values()} == {"empty-reply"}
