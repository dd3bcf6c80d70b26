"""What is permitted before a run: whole categories, one for each technique, and nothing that is in none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.config import Platform, WebSection
from fleet.config.escalation import EscalationSection
from fleet.errors import ConfigError
from fleet.gate import rules
from fleet.gate.categories import CATEGORIES, category_of, table
from fleet.gate.impact import techniques
from fleet.gate.rules import RULES, judge
from fleet.gate.scope import Scope
from sandbox.spec import Effect
from sandbox.tools import TOOLS
from tests.docs.apts import ROOT
from tests.gate.test_rules import PAGE as URL
from tests.gate.test_rules import _action as action
from tests.gate.test_rules import _facts as facts

PAGE = (ROOT / "docs" / "safety.md").read_text()


def test_each_technique_is_in_a_category_and_each_category_is_whole() -> None:
    rows = [row.split(" | ") for row in table().splitlines()[2:]]
    named = [name for row in rows for name in row[2].split(", ")]
    assert sorted(named) == sorted(f"`{one.name}`" for one in techniques())
    assert [row[0].removeprefix("| ") for row in rows] == [one.name for one in CATEGORIES]
    assert all(all(row) for row in rows)
    assert table() in PAGE


def test_an_act_on_nothing_that_is_known_is_in_no_category() -> None:
    unknown = replace(TOOLS["qa_create"], name="qa_new", acts_on="", acts_at="", points_at={})
    assert category_of(unknown, Effect.ACT, "qa_new") is None
    found = category_of(unknown, Effect.LOOK, "qa_new")
    assert found is not None
    assert found.name == "Reading"


def test_the_page_has_the_rules_of_the_gate_in_their_order() -> None:
    said = PAGE.partition("**A call.**")[2].partition("**")[0]
    places = [said.index(f"`{one.__name__}`") for one in RULES]
    assert places == sorted(places)


def test_what_is_in_no_category_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge(action("qa_fetch"), facts("qa_fetch")).permit
    monkeypatch.setattr(rules, "category_of", lambda *_: None)
    verdict = judge(action("qa_fetch"), facts("qa_fetch"))
    assert (verdict.permit, verdict.rule) == (False, "impact")
    assert verdict.reason == "qa_fetch GET: no category of what is permitted before has it"


def test_a_technique_that_the_profile_forbids_is_refused_and_a_wrong_name_is_an_error() -> None:
    web = WebSection(site=URL)
    never = EscalationSection(never=("qa_fetch GET",))
    scope = Scope.of(Platform(name="x", web=web, escalation=never), ())
    verdict = judge(action("qa_fetch"), facts("qa_fetch", scope=scope))
    assert (verdict.permit, verdict.rule) == (False, "never")
    assert verdict.reason == "qa_fetch GET: on escalation.never of the profile, which no rung lifts"
    with pytest.raises(ConfigError, match="no technique qa_fetch GOT"):
        Scope.of(Platform(name="x", escalation=EscalationSection(never=("qa_fetch GOT",))), ())
