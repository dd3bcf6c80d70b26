"""The herbarium's agent as the explorer of agents sees it, without a wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from fleet.config import Platform
from fleet.devnet.surfaces.herbarium import Herbarium
from fleet.drivers.explore.agent.explorer import make
from fleet.drivers.explore.port import ExplorerContext
from fleet.oracles.model import Facts
from fleet.personas.model import Step
from fleet.runs.proof.candidates import Candidate, answered


def explored(
    platform: Herbarium, *, calls: int = 10_000, promised: Mapping[str, Any] | None = None, seed: str = "s"
) -> tuple[dict[str, Candidate], list[Step]]:
    """What the oracles say of the explorer's questions, by oracle, and what it asked."""
    profile = Platform.model_validate(
        {
            "name": "herbarium",
            "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
            "call_targets": ["fern"],
            "facts": promised or {},
        }
    )
    ground = ExplorerContext(platform=profile, tools=frozenset({"qa_call"}), acts=True)
    explorer = make(ground, Random(seed), {})
    found: dict[str, Candidate] = {}
    asked: list[Step] = []
    while len(asked) < calls and (questions := explorer.ask(min(48, calls - len(asked)))):
        for question in questions:
            results: Sequence[Mapping[str, Any]] = [platform.answer(step.args) for step in question.steps]
            asked += question.steps
            for one in answered(question.steps, results, Facts.of(profile)):
                found.setdefault(one.oracle, one)
            explorer.learn(question, results)
    return found, asked
