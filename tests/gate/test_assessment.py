"""What a call risks is assessed before it is made, and too much is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleet.chain.keys import address_of, fresh
from fleet.config.fleet import AuthoritySection
from fleet.events.timeline import words
from fleet.gate.assessment import METHOD, assess
from fleet.gate.impact import techniques
from fleet.gate.rules import judge
from sandbox.spec import Effect
from tests.docs.apts import ROOT
from tests.gate.test_rules import SCOPE, _action, _facts
from tests.runs.table import persona, seated

ATTACK = {"url": "http://127.0.0.1:9000/?q=%3Cscript%3E"}
BY_NAME = {one.name: one for one in techniques()}


@pytest.mark.parametrize(
    ("name", "criticality", "effect", "scores", "overall"),
    [
        ("qa_fetch POST", "non-production", Effect.ACT, [(3, 2), (2, 2), (1, 3), (1, 1)], 6),
        ("qa_fetch attack", "production", Effect.LOOK, [(2, 3), (4, 2), (1, 4), (2, 3)], 8),
        ("qa_fetch file", "critical", Effect.LOOK, [(1, 4), (3, 2), (1, 4), (3, 5)], 15),
    ],
)
def test_four_dimensions_have_their_likelihood_and_impact(
    name: str, criticality: str, effect: Effect, scores: list[tuple[int, int]], overall: int
) -> None:
    found = assess(BY_NAME[name], criticality, effect)  # type: ignore[arg-type]
    assert [(one.likelihood, one.impact) for one in found] == scores
    assert found.overall == overall
    assert all(one.mitigations for one in found)
    assert f"method {METHOD}" in (ROOT / "docs" / "safety.md").read_text()


@pytest.mark.parametrize(("most", "permits"), [(8, True), (7, False)])
def test_what_risks_more_than_the_profile_permits_is_refused(most: int, permits: bool) -> None:
    facts = _facts("qa_fetch", scope=replace(SCOPE, risk_most=most))
    verdict = judge(_action("qa_fetch", args=ATTACK), facts)
    assert verdict.permit is permits
    if not permits:
        assert verdict.reason == "qa_fetch attack: it risks 8, more than limits.risk_most = 7"
    assert judge(_action("qa_fetch"), facts).permit  # what a visitor reads


@pytest.mark.anyio
async def test_an_assessment_is_on_record_before_the_call_where_the_scope_is_signed(tmp_path: Path) -> None:
    async with seated(tmp_path, persona()) as table:
        session = table.drive.runner.session
        attack = {"url": "http://site/?q=%3Cscript%3E"}
        await session.call("qa_fetch", attack)
        assert table.said("risk.assessed") == []
        signed = AuthoritySection(signers=(address_of(fresh()),))
        live = table.world.live
        live._config = live().model_copy(update={"authority": signed})
        await session.call("qa_fetch", attack)
        await session.call("qa_fetch", {"url": "http://site/"})
        [one] = table.said("risk.assessed")
        assert (one.technique, one.overall, one.most) == ("qa_fetch attack", 8, 15)
        assert list(one.dimensions) == ["target", "detection", "engagement", "organisation"]
        assert words(one) == "call 2: qa_fetch attack risks 8 of 15 at most"
