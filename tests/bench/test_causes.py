"""Items per defect, by hand-made keys."""

from __future__ import annotations

import re

from bench.findings.causes import causes, hand_made

KEYS = {"all": {"lang": "html-has-lang"}, "moss": {"sort": "_sort"}}


def test_items_of_one_cause_are_one_defect_of_each_program() -> None:
    titles = ["rule html-has-lang on /a", "rule html-has-lang on /b", "500 for _sort", "500 for /x"]
    found = causes([("moss", one) for one in titles] + [("fern", titles[0]), ("fern", titles[2])], KEYS)
    assert found.doubles == {"moss: lang": tuple(titles[:2])}
    assert str(found) == "6 items of 5 defects: 1.20 items per defect"


def test_nothing_found_is_nothing_doubled() -> None:
    assert str(causes([], KEYS)) == "0 items of 0 defects: 0.00 items per defect"


def test_every_key_is_a_pattern() -> None:
    for program, keys in hand_made().items():
        assert keys, program
        for pattern in keys.values():
            re.compile(pattern)
