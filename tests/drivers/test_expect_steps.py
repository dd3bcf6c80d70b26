"""How an expectation was decided, part by part."""

from __future__ import annotations

from fleet.drivers.expect import Values
from fleet.drivers.expect_steps import decided

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
