"""The phases of a run are on record, each before anything of it is done."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.session import RunOver
from fleet.events.timeline import words
from fleet.runs.call.confidence import score
from fleet.runs.call.targets import target_of
from tests.runs.table import look, persona, seated

pytestmark = pytest.mark.anyio


async def broken(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"ok": True, "status": 500 if "bad" in args["url"] else 200, "text": "hello"}


async def test_each_phase_begins_on_record_before_anything_of_it_is_done(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("good"), look("bad")), answer=broken) as table:
        await table.drive()
        phases = table.said("phase.changed")
        assert [(one.before, one.after) for one in phases][:4] == [
            ("initialization", "reconnaissance"),
            ("reconnaissance", "enumeration"),
            ("enumeration", "identification"),
            ("identification", "exploitation"),
        ]
        assert {("exploitation", "reporting"), ("reporting", "identification")} <= {
            (one.before, one.after) for one in phases
        }
        for before, after in itertools.pairwise(phases):
            assert before.after == after.before
        assert all(one.why and one.rung == "exercise" for one in phases)
        [raised] = table.said("finding.raised")
        proving = next(one for one in phases if one.after == "exploitation")
        assert raised.fingerprint in proving.why
        assert words(phases[0]).startswith("phase initialization -> reconnaissance: whether")
        order = [one.type for one in table.events]
        calls = [at for at, kind in enumerate(order) if kind == "tool.requested"]
        at = table.events.index(proving)
        assert any(one > at for one in calls)  # it is reproduced after that, and not before
        assert table.events.index(raised) < at
        # a decision stands before its first call, with its factors, two alternatives or more and a way out
        made = table.said("decision.made")
        asked = [one for one in made if one.selected_action.startswith("ask probe")]
        assert [one.threshold for one in asked] == [0.6, 0.6]
        [prove] = [one for one in made if one.selected_action.startswith("reproduce 1 candidate")]
        [judged] = [one for one in made if one.decision_type == "threshold crossing"]
        assert (prove.threshold, judged.confidence_score, judged.is_taken) == (0.7, 0.8, True)
        assert raised.title in prove.rationale
        assert raised.fingerprint in judged.selected_action
        assert any(one > table.events.index(prove) for one in calls)
        for one in made:
            assert len(one.alternatives_evaluated) >= 2
            assert all((one.rationale, one.risk, one.fallback, one.method, one.correlation_id))
            assert all(each.rationale and each.comparison for each in one.alternatives_evaluated)
            assert score(one.confidence_factors) == one.confidence_score
        assert words(asked[0]).startswith(
            "decides (confidence 0.95 of more than 0.60): ask probe good: 1 call"
        )
        [heard] = [one for one in table.events if one.type == "tool.responded" and one.call == 1]
        assert (heard.source, heard.event_type, heard.correlation_id) == (
            "jail",
            "response",
            f"{heard.run}/1",
        )


async def test_a_target_that_does_not_answer_is_not_asked_and_the_record_says_so(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("good"))) as table:
        session = table.drive.seat().runner.session
        [(tool, args)] = table.drive.runner.filled(table.drive.persona.persona.probe[0].steps)
        for _ in range(20):
            session.confidence.add(target_of(tool, args), "timeout", session.time.monotonic())
        with pytest.raises(RunOver):
            await table.drive()
        [made] = table.said("decision.made")
        assert (made.confidence_score, made.threshold, made.is_taken) == (0.3167, 0.6, False)
        assert words(made).startswith("decides against (confidence 0.32 of more than 0.60): ask probe good")
        assert table.said("tool.requested") == []


async def test_a_phase_that_goes_on_is_said_once(tmp_path: Path) -> None:
    async with seated(tmp_path, persona()) as table:
        session = table.drive.runner.session
        for phase in ("reconnaissance", "reconnaissance", "abort"):
            session.enter(phase, "a\x1b[31mreason")
        found = [(one.before, one.after, one.why) for one in table.said("phase.changed")]
        assert [one[:2] for one in found] == [
            ("initialization", "reconnaissance"),
            ("reconnaissance", "abort"),
        ]
        assert "\x1b" not in found[0][2]
