"""Where a value goes into a call."""

from __future__ import annotations

import pytest

from fleet.drivers.explore.web.points import Kind, Point
from fleet.drivers.explore.web.site_map import SiteMap
from tests.drivers.test_explore_urls import platform


@pytest.mark.parametrize(
    ("url", "kind", "name", "value", "args"),
    [
        ("{site}/s?q=moss", "query", "q", "a b&'", {"url": "{site}/s?q=a%20b%26%27"}),
        ("{site}/s?q=moss&n=1", "query", "q", "x", {"url": "{site}/s?n=1&q=x"}),
        ("{site}/s", "query", "new", "x", {"url": "{site}/s?new=x"}),
        ("{site}/a/b/c", "path", "2", "../x", {"url": "{site}/a/..%2Fx/c"}),
        ("{face:docs}?q=1", "query", "q", "é", {"url": "{face:docs}?q=%C3%A9"}),
        ("{site}/s", "header", "origin", "null", {"url": "{site}/s", "headers": {"origin": "null"}}),
        ("{site}/s", "field", "a", "x", {"url": "{site}/s", "fields": {"a": "x"}}),
    ],
)
def test_a_value_in_its_place(url: str, kind: Kind, name: str, value: str, args: dict[str, object]) -> None:
    assert Point(url, kind, name, "moss").step(value).args == args


def test_a_method_and_more_arguments() -> None:
    step = Point("{site}/s", "field", "a", "1", method="POST").step("x", repeat=2)
    assert step.args == {"url": "{site}/s", "method": "POST", "fields": {"a": "x"}, "repeat": 2}


@pytest.mark.parametrize(
    ("url", "filled"),
    [
        ("{site}/a/b", "{site}/a/x%2Fy"),
        ("{site}/a/b#/c/d", "{site}/a/x%2Fy#/c/d"),
        ("{site}/a/b?q=c/d", "{site}/a/x%2Fy?q=c/d"),
        ("http://127.0.0.1:8/a/b", "http://127.0.0.1:8/a/x%2Fy"),
    ],
)
def test_a_segment_is_counted_as_it_is_filled(url: str, filled: str) -> None:
    known = SiteMap.of(platform(site="http://a.test:9"), "seed")
    known.points(url, (("path", "-1", "b"),), good=True)
    (point,) = [one.point for one in known.inputs.all.values() if one.point is not None]
    assert point.step("x/y").args == {"url": filled}
