"""The number of proofs has one home."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.findings.proof import ALL, MOST_LOOKS, TRIES, is_confirmed
from tests.house_copy import HouseCopy

HOME = "fleet/findings/proof.py"


def test_what_follows_from_the_number() -> None:
    assert (TRIES, MOST_LOOKS, ALL) == (3, 5, "3 of 3")
    assert [is_confirmed(*rate) for rate in ((3, 3), (4, 4), (2, 2), (2, 3), (0, 0))] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("number", [2, 4])
def test_another_number_is_one_line(number: int, tmp_path: Path) -> None:
    """What a run confirms, triage calls confirmed, whatever the number is."""
    house = HouseCopy(tmp_path)
    house.replace(HOME, "\nTRIES = 3\n", f"\nTRIES = {number}\n")
    assert house.changed() == [HOME]
    shown = number // 2
    assert house.answers("tests.findings.newcomer", "proof", str(tmp_path / "state")) == {
        "rows": [
            [
                "always",
                "confirmed",
                f"{number}/{number}",
                "the budget of reports is spent: a later run posts it",
            ],
            [
                "half",
                "flaky",
                f"{shown}/{number}",
                f"it showed in {shown} of {number} tries; {number} of {number} is filed",
            ],
        ],
        "triage": ["confirmed"],
        "looks at a suspect": number,
        "looks at a silent target": number,
        "seconds": 7.0,
    }
