"""Row 8: a budget that is missing or cannot be read is a refused file, never a limit that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.app.persona_sets import roster
from fleet.config import FleetConfig, parse
from fleet.errors import ConfigError
from fleet.gate.budget import Budget

PERSONA = """+++
name = "qa-x"
surface = "ux"
tools = ["qa_create"]
{budget}
[[probe]]
id = "mint"
severity = "low"
steps = [{{ tool = "qa_create", args = {{ name = "{{name}}" }} }}]
expect = 'result.ok'
finding = "minting does not work"
+++
"""
GOOD = 'calls = 9, writes = 1, tokens = 10, usd = 0.5, day = { calls = 20, usd = 2 }, wall = "1m"'


def _load(folder: Path, budget: str) -> tuple[list[str], list[str]]:
    (folder / "qa-x.md").write_text(PERSONA.format(budget=budget))
    found, errors = roster(folder)
    return [str(Budget.of(one.persona.budget).limits()) for one in found.values()], [e.key for e in errors]


def test_a_budget_that_can_be_read(tmp_path: Path) -> None:
    limits = "{'calls': 9, 'writes': 1, 'reports': 8, 'closing': 1, 'tokens': 10, 'usd_micro': 500000}"
    assert _load(tmp_path, f"budget = {{ {GOOD} }}") == ([limits], [])


@pytest.mark.parametrize(
    ("budget", "key"),
    [
        ("", "tools"),
        ("budget = 9", "budget"),
        ("budget = {}", "budget.calls"),
        *(
            (f"budget = {{ {GOOD.replace(old, new)} }}", f"budget.{key}")
            for key, old in [
                ("calls", "calls = 9"),
                ("writes", "writes = 1"),
                ("tokens", "tokens = 10"),
                ("day.calls", "calls = 20"),
            ]
            for new in [
                old.partition("=")[0] + f"= {bad}"
                for bad in ("-1", "inf", "nan", "1.0", '"9"', "true", "10000000000000", "[]")
            ]
        ),
        *(
            (f"budget = {{ {GOOD.replace(old, f'usd = {bad}')} }}", key)
            for key, old in [("budget.usd", "usd = 0.5"), ("budget.day.usd", "usd = 2")]
            for bad in ("-0.1", "inf", "nan", '"1"', "true", "0.0000001", "1e9", "{}")
        ),
        (f"budget = {{ {GOOD.replace('1m', 'for ever')} }}", "budget.wall"),
        (f"budget = {{ {GOOD}, cals = 1 }}", "budget.cals"),
        (f"budget = {{ {GOOD.replace('usd = 2', 'closing = 2')} }}", "budget.day.closing"),
    ],
)
def test_a_budget_that_cannot_be_read_refuses_the_persona(tmp_path: Path, budget: str, key: str) -> None:
    assert _load(tmp_path, budget) == ([], [key])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("writes = -1", "budget.writes: "),
        ("usd = nan", "budget.usd: "),
        ('usd = "1"', "budget.usd: .*an amount in dollars is a number"),
        ("calls = true", "budget.calls: "),
        ("wall = 1", "budget.wall: unknown key; valid keys here: calls, reports, tokens, usd, writes"),
    ],
)
def test_a_fleet_s_budget_that_cannot_be_read_is_an_error(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"fleet.toml: {said}"):
        parse(FleetConfig, f"[budget]\n{text}\n", file="fleet.toml")


def test_a_fleet_has_a_daily_limit_for_what_leaves_marks_unless_it_says_otherwise() -> None:
    budget = parse(FleetConfig, "[budget]\nusd = 0.1\nreports = 7\n", file="fleet.toml").budget
    assert (budget.calls, budget.writes, budget.reports, budget.tokens) == (None, 10_000, 7, 10_000_000)
    assert str(budget.usd) == "0.1"
