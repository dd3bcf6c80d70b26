"""docs/data.md says the levels that the code states, for everything that the fleet keeps."""

from __future__ import annotations

import re
from typing import get_args

from fleet.config.fleet import KeepSection
from fleet.findings.levels import OF_RUN, OF_STATE, Level
from fleet.runs.vault import CIPHER, RESTRICTED
from tests.docs.apts import ROOT

TEXT = (ROOT / "docs" / "data.md").read_text()
ROWS = [
    [cell.strip() for cell in row.strip("|").split("|")] for row in TEXT.splitlines() if row.startswith("| ")
]


def test_each_level_has_every_rule_of_handling() -> None:
    [head] = [row for row in ROWS if row[0] == "level"]
    rules = {row[0]: row for row in ROWS if row[0] in get_args(Level)}
    assert rules.keys() == set(get_args(Level))
    assert all(len(row) == len(head) == 8 and all(row) for row in rules.values())
    assert CIPHER.removeprefix("age: ").partition(" (")[0] in rules[RESTRICTED][4]


def test_what_lies_where_has_the_level_of_the_code() -> None:
    found: dict[str, dict[str, str]] = {"a run's folder": {}, "the state directory": {}}
    for row in ROWS:
        place, _, names = row[0].partition(": ")
        if place in found:
            found[place] |= dict.fromkeys(re.findall(r"`([^`]+)`", names), row[1])
    assert found["a run's folder"] == {name: one.level for name, one in OF_RUN.items()}
    assert found["the state directory"] == {name: one.level for name, one in OF_STATE.items()}


def test_its_times_are_the_defaults() -> None:
    keep = KeepSection()
    assert f"`vault_days` ({keep.vault_days} at most), all else `people_days` ({keep.people_days:,})" in TEXT
