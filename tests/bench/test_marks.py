"""The table of all marks: what it reads from a bench, and what a row says."""

from __future__ import annotations

import importlib.util

from bench.marks import ARGS, BENCHES, LONG, TO_FILE, Mark, figure, table

LATENCY = {"latency": {"load": 0.4, "date": "2026-11-28", "commit": "abc1234", "figures": {}}}


def row_of(text: str, mark: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| {mark} |"))


def test_a_figure_is_found_by_its_path_and_only_a_number_is_one() -> None:
    found = {"a": {"b": 2, "c": "fast", "d": None}}
    assert figure(found, ("a", "b")) == 2.0
    assert [figure(found, path) for path in (("a", "c"), ("a", "d"), ("a", "x"), ("b", "c"), ("a",))] == [
        None
    ] * 5


def test_a_row_says_the_figure_what_is_asked_and_whether_it_is_met() -> None:
    for error, met in ((0.049, "yes"), (0.051, "**no**"), (-0.051, "**no**")):
        kept = {"latency": LATENCY["latency"] | {"figures": {"open_loop/error": error}}}
        what = f"error of the p95 at a server that stalls | {error:g} | -0.05 to 0.05 | {met}"
        assert row_of(table(kept), "B18") == f"| B18 | {what} | 0.4 | 2026-11-28 | abc1234 |"


def test_what_was_never_measured_says_so() -> None:
    assert row_of(table({}), "B18").split("|")[3:5] == [" not measured ", " -0.05 to 0.05 "]
    assert table({}).count("not measured") == sum(map(len, BENCHES.values()))


def test_a_mark_is_met_at_its_bound() -> None:
    assert [Mark("B", "", (), least=0.5).verdict(value) for value in (0.49, 0.5)] == ["**no**", "yes"]
    assert [Mark("B", "", (), most=0.5).verdict(value) for value in (0.5, 0.51)] == ["yes", "**no**"]
    assert Mark("–", "", ()).verdict(3.0) == ""


def test_every_bench_that_is_named_exists() -> None:
    for name in {*BENCHES, *ARGS, *LONG, *TO_FILE}:
        assert importlib.util.find_spec(f"bench.{name}"), name
