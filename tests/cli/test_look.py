"""What a look says at its end: its exit code, and what was not looked at. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.app.discovery.discover import NamedTargets
from fleet.cli.look import LookPlan, Shown, bounded, coverage
from fleet.gate.model import Rung
from fleet.triage.outputs.document import WorklistDocument
from tests.cli.test_worklist_command import ITEMS
from tests.runs.table import persona


def run(outcome: str = "done", **groups: list[dict[str, Any]]) -> dict[str, Any]:
    rows = {"persona": "qa-x", "outcome": outcome, "detail": "", "calls": 7, "findings": ()}
    return rows | {"coverage": groups}


DONE, CUT = run(), run(left=[{"part": "explorer web", "reason": "asked 3 of about 9", "cut": True}])
SILENT, REFUSED, NOTHING = run("could_not_tell"), run("awaiting_human"), run("blind")


@pytest.mark.parametrize(
    ("found", "runs", "code"),
    [
        (True, (DONE,), 1),
        (True, (SILENT,), 1),
        (False, (DONE, CUT), 0),
        (False, (CUT,), 0),
        (False, (DONE, REFUSED, NOTHING), 0),
        (False, (DONE, SILENT), 4),
        (False, (REFUSED,), 5),
        (False, (NOTHING,), 3),
        (False, (), 75),
    ],
)
def test_the_exit_code(found: bool, runs: tuple[dict[str, Any], ...], code: int) -> None:
    items = tuple(item for item in ITEMS if item.rank and item.trusted) if found else ()
    assert Shown(items, WorklistDocument(), runs, ()).code == code


@pytest.mark.parametrize(
    ("rung", "runs", "said", "unsaid"),
    [
        (
            Rung.OBSERVE,
            (DONE, DONE),
            ("qa-x, qa-x: 14 calls", "visitor alone", "--exercise"),
            "Not looked at",
        ),
        (
            Rung.OBSERVE,
            (DONE, run("stopped")),
            ("It was stopped before its time was over.",),
            "Not looked at",
        ),
        (
            Rung.OBSERVE,
            (CUT,),
            ("Not looked at: explorer web: asked 3 of about 9.", "--minutes 15"),
            "accounts.",
        ),
        (
            Rung.EXERCISE,
            (run(as_whom=[{"part": "/me", "accounts": 2}]),),
            ("on 1 path as accounts",),
            "alone",
        ),
        (
            Rung.EXERCISE,
            (run(unexplored=[{"probe": "b", "reason": "c"}]),),
            ("b: c.",),
            "--minutes",
        ),
    ],
)
def test_what_was_not_looked_at_and_what_would_change_it(
    rung: Rung, runs: tuple[dict[str, Any], ...], said: tuple[str, ...], unsaid: str
) -> None:
    plan = LookPlan(NamedTargets.of(["127.0.0.1:1"]), Path("/x/looks/y"), 5.0, rung, ())
    text = coverage(runs, (), plan)
    assert all(word in text for word in said), text
    assert unsaid not in text


def test_who_could_look_at_nothing_did_not_look() -> None:
    plan = LookPlan(NamedTargets.of(["127.0.0.1:1"]), Path("/x/looks/y"), 5.0, Rung.OBSERVE, ())
    assert coverage([DONE, NOTHING | {"persona": "qa-y"}], (), plan).startswith("Looked at by qa-x: 14 calls")


@pytest.mark.parametrize(
    ("seconds", "asked", "permitted"),
    [
        (20, {"calls": 3_000, "writes": 120}, {"calls": 3_000, "writes": 120, "reports": 100}),
        (225, {"calls": 3_000, "writes": 120}, {"calls": 9_000, "writes": 675, "reports": 100}),
        (9_000, {"calls": 3_000, "writes": 120}, {"calls": 10_000, "writes": 1_000, "reports": 100}),
        (225, {"calls": 3_000, "writes": 0}, {"calls": 9_000, "writes": 0, "reports": 100}),
    ],
)
def test_the_limit_of_a_look_is_its_time(
    seconds: int, asked: dict[str, Any], permitted: dict[str, int]
) -> None:
    """Its persona's own limits are for a run every few hours; what may not write does not."""
    budget = bounded(persona(**asked), seconds).persona.budget
    assert budget is not None
    assert budget.model_dump(include={*permitted, "wall"}) == permitted | {"wall": f"{seconds}s"}
