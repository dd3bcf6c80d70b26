"""Each precondition refuses alone, with its reason; without rules the answer is no."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fleet.config.propose import ProposeSection
from fleet.fix.permission.allow_git import GitPermission
from fleet.fix.permission.preconditions import RULES, ProposeFacts, ProposeRefusal, refusal, table
from fleet.gate.model import Rung
from tests.fix.tasks import FP, item

GOOD = ProposeFacts(
    asked=FP,
    item=item(),
    named=False,
    rung=Rung.PROPOSE,
    stop="",
    permission=GitPermission(True, "item"),
    limits=ProposeSection(),
    repository="sample",
)
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("stop", {"stop": "STOP is set"}, "STOP is set"),
    ("dial", {"rung": Rung.EXERCISE}, "a proposal needs propose; the dial says exercise"),
    ("dial", {"rung": Rung.OBSERVE}, "a proposal needs propose; the dial says observe"),
    ("item", {"item": None}, f"no item {FP} on the worklist"),
    ("item", {"item": item(trusted=False)}, "only a stranger reports it"),
    ("held", {"item": item(state="dismissed")}, "a person has dismissed it"),
    ("held", {"item": item(state="snoozed")}, "a person has snoozed it"),
    ("state", {"item": item(state="new")}, "it is new, not confirmed"),
    ("state", {"item": item(state="fixed")}, "it is fixed, not confirmed"),
    ("state", {"item": item(state="needs-repro")}, "it is needs-repro, not confirmed"),
    ("state", {"item": item(state="proposed")}, "it is proposed, not confirmed"),
    ("proof", {"item": item(proof="flaky")}, "it is flaky, not confirmed"),
    ("proof", {"item": item(proof="needs-repro")}, "it is needs-repro, not confirmed"),
    ("proof", {"item": item(proof="untrusted")}, "it is untrusted, not confirmed"),
    ("repro", {"item": item(repro="")}, "it has no runnable repro of our own"),
    ("repro", {"item": item(repro="__import__('os')")}, "its repro cannot be read"),
    ("repro", {"item": item(repro="qa_erase()")}, "its repro names tools that do not exist: qa_erase"),
    ("tracked", {"tracked": "open issue 7"}, "open issue 7"),
    ("tried", {"tried": "held at own-tests"}, "held at own-tests"),
    ("build", {"unbuilt": "a chain is not there"}, "a chain is not there"),
    ("repository", {"repository": ""}, "no repository in fleet.toml is configured for compiler"),
    ("slots", {"live": 1, "every": 1}, "1 of 1 proposals of this item are open"),
    ("slots", {"every": 3}, "3 of 3 proposals are open"),
    ("budget", {"calls": 0, "budget": "the run's budget of 5 calls"}, "the run's budget of 5 calls is spent"),
    ("token", {"permission": GitPermission(False, "no token")}, "no token"),
]


def facts(**changes: Any) -> ProposeFacts:
    return replace(GOOD, **({"calls": 1} | changes))


def test_what_holds_is_not_refused() -> None:
    assert refusal(facts()) is None
    assert [one.why for one in table(facts())] == [""] * len(RULES)


@pytest.mark.parametrize(
    ("rule", "changes", "reason"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)]
)
def test_each_one_refuses_with_its_reason(rule: str, changes: dict[str, Any], reason: str) -> None:
    found = refusal(facts(**changes))
    assert found is not None
    assert (found.rule, reason in found.reason) == (rule, True)
    without = {name: one for name, one in RULES.items() if name != rule}
    left = refusal(facts(**changes), without)
    assert left is None or left.rule != rule


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} == set(RULES)


def test_no_rule_means_no() -> None:
    assert refusal(facts(), {}) == ProposeRefusal("none", "no rule permits this")


def test_a_person_may_ask_again_for_what_was_proposed_or_tracked() -> None:
    again = facts(item=item(state="proposed"), tracked="issue 7", tried="held at limits", named=True)
    assert refusal(again) is None


def test_a_regression_is_fixed_like_a_new_item() -> None:
    assert refusal(facts(item=item(state="regression"))) is None
