"""Measurements as SVG: a measure over time with its changes, and two samples side by side. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygal import XY

from fleet.oracles.statistics.changes import change_points
from fleet.text import line

LONGEST_MS = 600_000
"""Larger latencies count as this."""
DIGITS = 3


def distribution(
    title: str, own: Sequence[float], other: Sequence[float], before: Sequence[Sequence[float]] = ()
) -> bytes:
    """The share of requests that were answered within a time: the page's, its control's, earlier looks'."""
    chart = _chart(title, x_title="ms", y_title="answered, %")
    for name, values in (("page", own), ("control", other)):
        ordered = sorted(values)
        chart.add(name, [(one, 100 * (at + 1) / len(ordered)) for at, one in enumerate(ordered)])
    if before:
        chart.add("page, earlier", list(zip(pooled(before, range(1, 101)), range(1, 101), strict=True)))
    return _svg(chart)


def course(title: str, values: Sequence[float]) -> bytes:
    """A measure look by look, with a line from its lowest to its highest value at each change."""
    chart = _chart(title, x_title="look", y_title="median")
    chart.add("measured", list(enumerate(values)))
    for at in change_points(values):
        chart.add(f"change at {at}", [(at, min(values)), (at, max(values))])
    return _svg(chart)


def _chart(title: str, **titles: str) -> XY:
    import pygal

    # its import hook for plugins would be asked for every later import, in an interface that Python dropped
    sys.meta_path[:] = [one for one in sys.meta_path if type(one).__module__ != "pygal"]
    return pygal.XY(pygal.Config(js=(), title=line(title, 110), show_dots=True, dots_size=2, **titles))


def _svg(chart: XY) -> bytes:
    """The picture without the script that pygal adds for its tooltips."""
    from xml.etree import ElementTree

    root = chart.render_tree()
    for parent in list(root.iter()):
        for child in [one for one in parent if str(one.tag).rpartition("}")[2] == "script"]:
            parent.remove(child)
    return bytes(ElementTree.tostring(root, encoding="utf-8"))


def pooled(looks: Iterable[Sequence[float]], ranks: Sequence[float]) -> list[float]:
    """Percentiles (0 to 100, within 0.1 %) of latencies in milliseconds, in the order of `ranks`; or 0."""
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(1, LONGEST_MS * 1000, DIGITS)
    for values in looks:
        for one in values:
            histogram.record_value(max(1, min(round(one * 1000), LONGEST_MS * 1000)))
    return [histogram.get_value_at_percentile(rank) / 1000 for rank in ranks]
