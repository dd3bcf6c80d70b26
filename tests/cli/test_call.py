"""`fleet call`: the calls of a repro by hand; the run itself is in tests/e2e/test_scripts.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fleet.cli import call

ACT = 'qa_call(message="hi", target="moss")'
LOOK = 'qa_fetch(url="{site}/")'


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return tmp_path


def called(*words: str, given: str = "") -> Result:
    return CliRunner().invoke(call.app, list(words), input=given)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rm -rf /", "not calls: expected a tool call at character 0"),
        ('qa_ftch(url="x")', "no tool 'qa_ftch'; did you mean 'qa_fetch'?"),
        ('qa_fetch(ur="x")', "qa_fetch: /url: Field required"),
        ('qa_report(title="x", severity="low")', "qa_report posts to the log: a repro has no such call"),
    ],
)
def test_what_is_no_call_is_a_usage_error(text: str, why: str) -> None:
    error = called(text).exception
    assert getattr(error, "exit_code", None) == 2
    assert str(error).startswith(why)
    assert getattr(error, "remedy", "")


def test_a_dry_run_says_what_it_would_call_and_which_rung_that_needs() -> None:
    assert called(f"{LOOK}; {ACT}", "--dry-run").stdout.splitlines() == [
        "GET {site}/",
        "a call of moss",
        "needs the rung exercise; the dial is at observe",
    ]
    data = json.loads(called(LOOK, "--dry-run", "--json").stdout)
    assert data["needs"] == "observe"
    assert data["calls"] == [{"tool": "qa_fetch", "args": {"url": "{site}/"}}]


def test_calls_may_come_on_stdin() -> None:
    assert called("-", "--dry-run", given=f"{LOOK}\n").stdout.splitlines()[0] == "GET {site}/"


def test_an_act_is_refused_below_its_rung_before_anything_starts(state: Path) -> None:
    error = called(ACT).exception
    assert (getattr(error, "exit_code", None), getattr(error, "rule", "")) == (5, "dial")
    assert not (state / "fleet.db").exists()
