"""A shell completes states, severities, links and the fingerprints of our own items."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.cli import app
from fleet.cli.completion import completed_from, fingerprints
from tests.cli.test_worklist_command import ITEMS, state

__all__ = ("state",)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("fleet items --sta", ["--state"]),
        ("fleet items --state s", ["snoozed"]),
        ("fleet items log v", ["verify"]),
        ("fleet items --severity h", ["high"]),
        ("fleet items --surface on", ["on-chain"]),
        ("fleet items severity abc m", ["medium"]),
        ("fleet items link abc f", ["follows-from"]),
        ("fleet items show abc", ["abcdef012345"]),
        ("fleet items dismiss 5555", []),
    ],
)
def test_values_are_completed(state: Path, words: str, found: list[str]) -> None:
    asked = {
        "_FLEET_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    said = CliRunner().invoke(app, [], env=asked, prog_name="fleet")
    assert said.stdout.split() == found


def test_fingerprints_are_of_ours_with_their_titles(state: Path) -> None:
    found = fingerprints("")
    assert [name for name, _ in found] == [one.fingerprint for one in ITEMS if one.trusted]
    assert found[1] == (f"{2:012x}", "finding number 2")
    (state / "worklist.json").write_text("{")
    assert fingerprints("") == []


def test_a_fixed_list_is_completed_by_its_beginning() -> None:
    assert completed_from(("open", "all"))("o") == ["open"]
