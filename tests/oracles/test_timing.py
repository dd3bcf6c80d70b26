"""When the timing oracles speak: shape of the question, size of the effect, a control that did not move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fleet.oracles.measures import latency_of, measured
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.statistics import ranks
from fleet.oracles.table import judge
from fleet.oracles.web import timing
from fleet.oracles.web.timing import COUNTED, LOOKS, same_kind, unsettled
from fleet.store.rows import SampleRow

pytest.importorskip("scipy", reason="the extra `stats` is not installed")
FAST = [5 + at * 0.618 % 1 for at in range(50)]
SLOW = [one + 400 for one in FAST]


def look(page: str, own: Sequence[float], control: str, beside: Sequence[float], **more: Any) -> Exchange:
    result = {"status": 200, "samples_ms": list(own), "control_ms": list(beside)} | more
    return Exchange("qa_fetch", {"url": page, "control": control, "rate": 10.0}, result)


def said(*seen: Exchange, facts: Facts | None = None) -> list[str]:
    return [one.oracle for one in judge(seen, facts or Facts())]


KIN = look("{site}/b", FAST[:20], "{site}/c", FAST[:20])
LAST = look("{site}/a", SLOW, "{site}/d", FAST)


@pytest.mark.parametrize(
    ("one", "other", "kin"),
    [
        ("{site}/a", "{site}/b", True),
        ("{face:fern}", "{face:moss}", True),
        ("{face:fern}app.wasm", "{face:moss}", False),
        ("{site}/api/x?n=1", "{site}/api/x?n=2", True),
        ("{site}/api/x", "{site}/y", False),
        ("{site}/a", "{proxy}/a", False),
        ("http://h/a", "http://g/a", False),
        ("http://h/a", "http://h/b", True),
        ("{site}/a", "{site}/a", False),
    ],
)
def test_pages_of_one_kind(one: str, other: str, kin: bool) -> None:
    assert same_kind(one, other) is same_kind(other, one) is kin


def test_a_page_far_above_its_kind_rests_on_what_it_was_compared_with() -> None:
    (found,) = judge((KIN, LAST), Facts())
    assert (found.oracle, found.led, found.sighting.signature) == ("slow-page", (0,), "slow {site}/a")
    assert "takes 405 ms (median), 3 other pages at most" in found.sighting.title


@pytest.mark.parametrize(
    "seen",
    [
        (LAST,),
        (look("{site}/b", FAST, "{site}/d", FAST), LAST),  # two others
        (
            look("{proxy}/x/b", FAST, "{proxy}/x/c", FAST),
            look("{site}/a", SLOW, "{proxy}/x/d", FAST),
        ),  # no kin
        (look("{site}/b", SLOW, "{site}/c", SLOW), LAST),  # not the only slow one
        (KIN, look("{site}/a", SLOW, "{site}/d", SLOW)),
        (KIN, look("{site}/a", [one + 140 for one in FAST], "{site}/d", FAST)),  # too little
        (KIN, look("{site}/a", SLOW, "{site}/a", FAST)),  # its own control
        (KIN, look("{site}/a", SLOW[:20], "{site}/d", FAST[:20])),  # too few
        (KIN, look("{site}/a", SLOW, "{site}/d", FAST[:49])),
        (KIN, look("{site}/a", SLOW, "{site}/d", FAST, status=404)),
        (KIN, look("{site}/a", [-1.0, *SLOW], "{site}/d", [*FAST, 1.0])),
        (Exchange("qa_fetch", {"url": "{site}/b"}, {"status": 200}), LAST),
    ],
)
def test_any_other_question_says_nothing(seen: tuple[Exchange, ...]) -> None:
    assert said(*seen) == []


@pytest.mark.parametrize(
    ("slow", "found"),
    [
        ([at % 5 == 4 for at in range(50)], ["slow-share"]),
        ([at % 10 == 9 for at in range(50)], []),  # 5 of 50: chance may do that
        ([10 <= at < 22 for at in range(50)], []),  # one pause
        ([False] * 50, []),
    ],
)
def test_a_share_of_slow_requests(slow: list[bool], found: list[str]) -> None:
    own = [one + 400 * late for one, late in zip(FAST, slow, strict=True)]
    assert said(look("{site}/a", own, "{site}/d", FAST)) == found
    restless = [one + 100 * (at % 7 == 0) for at, one in enumerate(FAST)]
    assert said(look("{site}/a", own, "{site}/d", restless)) == []


@pytest.mark.parametrize(
    ("typical", "late", "every", "found"),
    [
        (200, 400, 4, ["slow-share"]),
        (200, 400, 3, ["slow-share"]),  # the page's upper quartile is a slow request
        (400, 400, 4, ["slow-share"]),
        (200, 140, 4, []),
        (400, 190, 4, []),  # less than half as much again
    ],
)
def test_a_share_of_slow_requests_of_a_costly_page(
    typical: float, late: float, every: int, found: list[str]
) -> None:
    """Its usual requests vary by a tenth, as its control's do."""
    usual = [typical * (0.95 + at * 0.618 % 1 / 10) for at in range(50)]
    own = [one + late * (at % every == 1) for at, one in enumerate(usual)]
    assert said(look("{site}/a", own, "{site}/d", usual)) == found
    wide = [typical * (0.2 + at * 0.618 % 1 * 1.6) for at in range(50)]
    assert said(look("{site}/a", own, "{site}/d", wide)) == []  # the control's own spread is as large


def test_a_measurement_beside_a_restless_control_cannot_tell() -> None:
    restless = [one + 100 * (at % 7 == 0) for at, one in enumerate(FAST)]
    why = unsettled(look("{site}/a", FAST, "{site}/d", restless))
    assert why == "its control took 106 ms (p95) where it took 5.57 ms (median)"
    assert unsettled(look("{site}/a", restless, "{site}/d", FAST)) == ""
    assert unsettled(look("{site}/a", FAST[:20], "{site}/d", restless[:20])) == ""


def past(page: str, factor: float = 1.0, looks: int = LOOKS) -> Facts:
    (row,) = measured(look(page, [factor * one for one in FAST], "{site}/d", FAST))
    return Facts(past={row.measure: [row] * looks})


def test_a_regression_is_against_its_best_time_and_beside_a_control() -> None:
    slower = look("{site}/a", [one + 150 for one in FAST], "{site}/d", FAST)
    (found,) = judge((slower,), past("{site}/a"))
    assert (found.oracle, found.sighting.signature) == ("slow-regression", "slow {site}/a")
    assert "in 5 earlier runs" in found.sighting.title
    assert said(slower) == said(slower, facts=past("{site}/a", looks=LOOKS - 1)) == []
    assert said(slower, facts=past("{site}/a", factor=40)) == []
    busy = look("{site}/a", [one * 30 for one in FAST], "{site}/d", [one * 30 for one in FAST])
    assert said(busy, facts=past("{site}/a")) == []


def test_a_creep_does_not_become_the_measure_of_itself() -> None:
    name = latency_of({"url": "{site}/a", "control": "{site}/d"})
    rows = [
        SampleRow(measure=name, own=tuple(one * 1.1**at for one in FAST), control=tuple(FAST))
        for at in range(40)
    ]
    now = look("{site}/a", [one * 1.1**40 for one in FAST], "{site}/d", FAST)
    assert said(now, facts=Facts(past={name: rows})) == ["slow-regression"]


@pytest.mark.parametrize(
    ("tool", "field", "result"),
    [
        ("qa_call", "turns", {"status": 200}),
        ("qa_call", "charged", {"status": 200}),
        ("qa_publish", "gas_used", {}),
    ],
)
def test_a_count_above_all_that_it_ever_was(tool: str, field: str, result: dict[str, Any]) -> None:
    def counted(value: int) -> Exchange:
        return Exchange(tool, {"target": "a", "name": "{name}"}, {"ok": True, **result, field: value})

    (row,) = measured(counted(100))
    facts = Facts(past={row.measure: [row] * COUNTED})
    assert said(counted(150), facts=facts) == ["cost-regression"]
    assert (
        said(counted(149), facts=facts)
        == said(counted(150), facts=Facts(past={row.measure: [row] * 11}))
        == []
    )
    other = replace(counted(150), args={"target": "b", "name": "{name}"})
    assert said(other, facts=facts) == []
    failed = replace(counted(150), result={**counted(150).result, "ok": False})
    assert "cost-regression" not in said(failed, facts=facts)


def test_without_the_libraries_it_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "missing", lambda: "not installed: scipy")
    for oracle in (timing.slow_regression, timing.slow_page, timing.slow_share):
        assert judge(oracle.example, oracle.given) == ()
