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
    ],
)
def test_a_value_within_the_range_of_a_refusal(query: str, status: int, text: str, found: bool) -> None:
    asked = Exchange("qa_fetch", {"url": "{site}/notes?" + query}, {"status": status, "text": text})
    told = [one.oracle for one in table.judge((asked,), Facts())]
    assert told == ["refused-in-range"] * found
