"""The classes of impact: every call has one, by what is left at worst, and by what hangs on the host."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from fleet.config.escalation import LEVELS, EscalationSection
from fleet.config.scope import HostCare, HostSection
from fleet.gate.impact import REVIEW_DAYS, REVIEWED, reviewed, technique_of, techniques
from fleet.gate.rules import judge, technique
from sandbox.spec import SAFE, UNSAFE, Effect
from sandbox.tools import TOOLS
from tests.gate.test_rules import ARGS, PAGE, SCOPE, _action, _facts

TECHNIQUES = {one.name: one for one in techniques()}
ASKING = replace(SCOPE, escalation=EscalationSection(impact="high"))


def calls() -> list[tuple[str, Effect, dict[str, Any]]]:
    """One call of each tool, with each method and effect that it can have."""
    found = [(name, spec.effect, ARGS[name]) for name, spec in TOOLS.items()]
    found += [
        ("qa_fetch", Effect.LOOK if one in SAFE else Effect.ACT, {"method": one}) for one in (*SAFE, *UNSAFE)
    ]
    return [*found, ("qa_mcp", Effect.ACT, {}), ("qa_pay", Effect.ACT, {})]


def test_every_call_has_a_class_and_no_class_is_without_a_call() -> None:
    named = {found.name for tool, effect, args in calls() if (found := technique_of(tool, effect, args))}
    assert named == set(TECHNIQUES)
    assert technique_of("qa_new", Effect.LOOK, {}) is None
    assert technique_of("qa_fetch", Effect.ACT, {"method": "PROPFIND"}) is None
    assert technique_of("qa_fetch", Effect.ACT, {"method": "GET"}) == TECHNIQUES["qa_fetch DELETE"]


def test_the_dimension_of_which_least_is_left_decides() -> None:
    one = TECHNIQUES["qa_fetch GET"]
    for place, (score, level) in product(
        ("confidentiality", "integrity", "availability"),
        (
            (8, "low"),
            (7, "medium"),
            (6, "medium"),
            (5, "high"),
            (3, "high"),
            (2, "critical"),
            (0, "critical"),
        ),
    ):
        kept: dict[str, Any] = {place: score}
        assert replace(one, **kept).level == level
    assert (one.scores, one.weighted) == ((8, 9, 8), 8.4)
    assert {one.level for one in TECHNIQUES.values()} == {"low", "medium", "high"}


@pytest.mark.parametrize(
    ("criticality", "method", "level"),
    [
        ("non-production", "GET", "low"),
        ("production", "GET", "low"),
        ("unknown", "GET", "low"),
        ("critical", "GET", "medium"),
        ("non-production", "POST", "medium"),
        ("production", "POST", "high"),
        ("unknown", "POST", "high"),
        ("production", "DELETE", "critical"),
    ],
)
def test_what_hangs_on_a_host_lowers_what_is_left(criticality: Any, method: str, level: str) -> None:
    care = HostCare.of({"127.0.0.1:9000": HostSection(criticality=criticality, approved="ada")})
    effect = Effect.LOOK if method == "GET" else Effect.ACT
    action = _action("qa_fetch", effect=effect, args={"url": PAGE, "method": method})
    found = technique(action, _facts("qa_fetch", effect=effect, scope=replace(SCOPE, care=care)))
    assert found is not None
    assert found.level == level


def test_a_person_is_asked_once_for_a_technique_at_a_host_and_only_for_what_all_else_permits() -> None:
    action, facts = _action("qa_account"), _facts("qa_account", scope=ASKING)
    facts = replace(facts, acts_at="", acts_on="")
    verdict = judge(action, facts)
    assert (verdict.permit, verdict.rule, verdict.asks) == (False, "person", "qa_account at 127.0.0.1")
    assert verdict.reason == "qa_account at 127.0.0.1 has the impact high: a person is asked first"
    asked = verdict.asks
    assert judge(action, replace(facts, answers={asked: "approved"})).permit
    assert judge(action, replace(facts, answers={"qa_account at elsewhere": "approved"})).asks == asked
    no = judge(action, replace(facts, answers={asked: "ada said no: not today"}))
    assert (no.permit, no.rule, no.asks) == (False, "person", "")
    spent = judge(action, replace(facts, left={}))
    assert (spent.rule, spent.asks) == ("budget", "")
    assert judge(_action("qa_fetch"), _facts("qa_fetch", scope=ASKING)).permit


def test_the_levels_from_which_on_a_person_is_asked() -> None:
    asked = {
        start: [level for level in LEVELS if EscalationSection(impact=start).asks(level)]
        for start in ("medium", "high", "critical", "never")
    }
    assert asked == {
        "medium": ["medium", "high", "critical"],
        "high": ["high", "critical"],
        "critical": ["critical"],
        "never": [],
    }


def test_a_review_that_is_overdue_is_told_where_the_machine_is_checked() -> None:
    """The review: read the scores against the tools, set REVIEWED, say in CHANGELOG.md what changed."""
    last = REVIEWED + timedelta(days=REVIEW_DAYS)
    assert reviewed(last) == f"reviewed on {REVIEWED}"
    late = "more than 92 days ago: look for a newer release"
    assert reviewed(last + timedelta(days=1)) == f"reviewed on {REVIEWED}, {late}"
