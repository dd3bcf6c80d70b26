"""How an expectation was decided, part by part."""

from __future__ import annotations

import re

import pytest

from fleet.drivers.expect import ExpectationError, Values, decided, evaluate

VALUES = Values([{"ok": True, "status": 404, "links": ["/a", "/b"], "value": None}])


def test_every_part_has_its_value_and_the_whole_is_last() -> None:
    assert decided("result.ok && (result.status == 200 || size(result.links) > 1)", VALUES) == [
        ("result.links", '["/a", "/b"]'),
        ("size(result.links)", "2"),
        ("size(result.links) > 1", "true"),
        ("result.status", "404"),
        ("result.status == 200", "false"),
        ("result.status == 200 || size(result.links) > 1", "true"),
        ("result.ok", "true"),
        ("result.ok && (result.status == 200 || size(result.links) > 1)", "true"),
    ]


def test_a_macro_s_own_variable_has_no_single_value() -> None:
    assert decided("result.links.all(l, l != '')", VALUES) == [
        ("result.links", '["/a", "/b"]'),
        ("result.links.all(l, l != '')", "true"),
    ]


def test_what_cannot_be_decided_says_why() -> None:
    (*_, (whole, why)) = decided("result.value > 3", VALUES)
    assert whole == "result.value > 3"
    assert why.startswith("cannot be decided: ")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("result.links.x == 1", "a list has no fields"),
        ("result.links.map(l, l)[9] == ''", "there is no member at this index"),
        ("result.value['a'] == 1", "[_] does not take none and string"),
        ("result.links < 3", "< does not take list and int"),
        ("!result.links", "! does not take list"),
        ("result.links ? true : false", "?_: does not take list and bool and bool"),
    ],
)
def test_the_reason_is_in_the_words_of_an_expectation(text: str, why: str) -> None:
    with pytest.raises(ExpectationError, match=re.escape(f"cannot be decided: {why}") + "$"):
        evaluate(text, VALUES)
