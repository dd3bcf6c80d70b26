"""A refusal that states a range does not refuse a value within it."""

from __future__ import annotations

import pytest

from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts

SAID = '{"error": "size must be a number from 1 to 60"}'


@pytest.mark.parametrize(
    ("query", "status", "text", "found"),
    [
        ("size=60", 400, SAID, True),
        ("size=1", 422, "size should be between 1 and 60.", True),
        ("size=61", 400, SAID, False),
        ("size=0", 400, SAID, False),
        ("size=060", 400, SAID, False),  # not how a number is written
        ("size=5.5", 400, SAID, False),
        ("size=60&size=99", 400, SAID, False),
        ("count=60", 400, SAID, False),
        ("size=60", 404, SAID, False),
        ("size=60", 400, "size must not be from 1 to 60", False),
        ("size=60", 400, "size is wrong", False),
        ("size=60", 400, "size must be an integer in the range from 1 to 60 (inclusive), got 60", True),
        ("size=60", 422, '{"size": "must be 9", "why": "size must be between 1 and 60"}', True),
        # what a healthy platform refuses for what else it says
        ("size=7", 400, "size must be from 3 to 20 characters", False),
        ("size=7", 400, "size must be a name of length between 3 and 20", False),
        ("size=7", 400, "size must be an even number from 2 to 60", False),
        ("size=7", 400, "size must be a power of two between 1 and 64", False),
        ("size=60", 400, "size must be strictly between 1 and 60", False),
        ("size=60", 400, "size must be between 1 and 60 (exclusive)", False),
        ("size=60", 400, "size must be from 1 to 60, in steps of seven", False),
        ("size=60", 400, "size must be from 1 to 60 and below count", False),
    ],
)
def test_a_value_within_the_range_of_a_refusal(query: str, status: int, text: str, found: bool) -> None:
    asked = Exchange("qa_fetch", {"url": "{site}/notes?" + query}, {"status": status, "text": text})
    told = [one.oracle for one in table.judge((asked,), Facts())]
    assert told == ["refused-in-range"] * found
