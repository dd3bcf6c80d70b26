"""A measure over time: where its points are, and what is said of it."""

from __future__ import annotations

from fleet.store.rows import SampleRow
from fleet.web.plots import EDGE, HEIGHT, WIDTH, SpanBar, plots, scale


def look(measure: str, at: str, *own: float, control: tuple[float, ...] = ()) -> SampleRow:
    return SampleRow(measure=measure, own=own, control=control, at=f"2026-11-{at}T04:10:00Z")


def test_the_lowest_is_at_the_foot_the_highest_at_the_top_and_the_control_on_the_same_scale() -> None:
    rows = [
        look("m", "20", 10, 20, 30, control=(5,)),
        look("m", "21", 20, control=(45,)),
        look("m", "22", 45),
    ]
    (one,) = plots({"latency of /a beside /b": rows[:2]})
    foot, top = HEIGHT - EDGE, EDGE
    middle = f"{foot - 0.375 * (foot - top):.1f}"
    assert one.points == (f"{EDGE}.0,{middle}", f"{WIDTH - EDGE}.0,{middle}")
    assert one.control == (f"{EDGE}.0,{foot}.0", f"{WIDTH - EDGE}.0,{top}.0")
    assert (one.unit, one.lowest, one.highest, one.latest, one.looks) == ("ms", "5", "45", "20", 2)
    (one,) = plots({"m": rows})
    assert one.control == ()  # not at every look


def test_a_measure_of_one_look_has_no_plot_and_the_latest_come_first() -> None:
    past = {
        "gas_used of publish #01ab": [look("g", "20", 300_000), look("g", "21", 300_000)],
        "turns of reply #1": [look("t", "20", 2), look("t", "22", 3)],
        "latency of /once": [look("l", "23", 1)],
    }
    turns, gas = plots(past)
    assert (turns.name, turns.unit, gas.name, gas.unit) == (
        "turns of reply",
        "",
        "gas used of publish",
        "gas",
    )
    assert (gas.lowest, gas.highest, len(set(gas.points))) == ("300,000", "300,000", 2)


def test_spans_are_placed_on_the_line_from_the_first_begin_to_the_last_end() -> None:
    bars = [SpanBar("run", 10.0, 8.0), SpanBar("qa_fetch", 12.0, 2.0), SpanBar("at once", 18.0, 0.0)]
    scale(bars)
    assert [(one.x, one.width) for one in bars] == [(0.0, 100.0), (25.0, 25.0), (100.0, 0.0)]
    alone = [SpanBar("at once", 5.0, 0.0)]
    scale(alone)
    assert (alone[0].x, alone[0].width) == (0.0, 100.0)
