"""The statistics: rank tests with their error rate, change points, pooled percentiles, charts."""

from __future__ import annotations

import math
import sys
from random import Random
from xml.etree import ElementTree

import pytest

from fleet.oracles.statistics import charts, ranks
from fleet.oracles.statistics.changes import SHORTEST, best_level, change_points
from fleet.oracles.statistics.charts import pooled

pytest.importorskip("scipy", reason="the extra `stats` is not installed")


def around(chance: Random, level: float, count: int) -> list[float]:
    return [level * math.exp(chance.gauss(0, 0.2)) for _ in range(count)]


def test_the_size_of_an_effect_is_by_ranks() -> None:
    high, low = [10.0 + at for at in range(50)], [1.0] * 49 + [1e9]
    assert (ranks.above(high, low).delta, ranks.above(low, high).delta) == (1.0, -1.0)
    assert ranks.above(high, low).p < 1e-3 < 0.5 < ranks.above(low, high).p


def test_the_rank_test_keeps_its_rate_under_heavy_tails() -> None:
    chance = Random(5)
    pairs = [[[chance.paretovariate(1.1) for _ in range(50)] for _ in range(2)] for _ in range(1000)]
    assert sum(ranks.above(one, other).p <= 0.05 for one, other in pairs) <= 70


@pytest.mark.parametrize(("slow", "counts"), [(8, False), (10, True)])
def test_slow_values_are_counted_exactly(slow: int, counts: bool) -> None:
    own = [500.0] * slow + [5.0] * (50 - slow)
    assert (ranks.more_often(own, [5.0] * 50, 100) <= ranks.SHARE) is counts
    assert ranks.more_often([5.0] * 50, own, 100) == 1.0


def test_one_pause_is_one_burst() -> None:
    assert ranks.bursts([1, 9, 9, 9, 1], 5) == 1
    assert ranks.bursts([9, 1, 9, 1, 9], 5) == 3


def test_a_sketch_keeps_the_ends_and_the_ranks() -> None:
    values = [float(at) for at in range(200)]
    kept = ranks.sketch(values)
    assert (len(kept), kept[0], kept[-1], list(kept) == sorted(kept)) == (40, 0.0, 199.0, True)
    assert ranks.sketch([3.0, 1.0]) == (1.0, 3.0)
    assert abs(ranks.quantile(kept, 0.5) - ranks.quantile(values, 0.5)) <= 5


def test_the_changes_of_a_measure_and_its_best_time() -> None:
    chance = Random(2)
    course = [*around(chance, 20, 12), *around(chance, 45, 9), *around(chance, 30, 11)]
    assert [abs(found - at) <= 1 for found, at in zip(change_points(course), (12, 21), strict=True)] == [
        True
    ] * 2
    assert best_level(course).start == 0
    assert best_level([20 * 1.05**at for at in range(40)]).stop < 20  # a creep is not the measure of itself


def test_a_steady_measure_has_no_changes() -> None:
    chance = Random(3)
    assert sum(bool(change_points(around(chance, 20, 30))) for _ in range(200)) <= 20
    assert change_points([5.0] * 30) == change_points([1.0, 9.0] * (SHORTEST - 1)) == []


def test_percentiles_of_several_looks() -> None:
    assert pooled([[1.0] * 50, [100.0] * 50], [50, 51, 95]) == pytest.approx([1, 100, 100], rel=1e-3)
    assert pooled([], [95]) == [0.0]
    assert pooled([[1e12, 1e-9]], [100]) == pytest.approx([600_000], rel=1e-3)


@pytest.mark.parametrize("title", ["a page", "<script>alert(1)</script>&\x1b[0m\x00\ud800"])
def test_a_chart_is_a_picture_without_a_script(title: str) -> None:
    pictures = [
        charts.distribution(title, [5.0, 6.0, 400.0], [5.0, 5.5, 6.0], [[5.0] * 9]),
        charts.course(title, [5.0] * 9 + [40.0] * 9),
    ]
    for picture in pictures:
        names = {
            one.tag.rpartition("}")[2]
            for one in ElementTree.fromstring(picture).iter()
            if isinstance(one.tag, str)
        }
        assert "svg" in names
        assert "script" not in names
        assert b"//kozea" not in picture
    assert [one for one in sys.meta_path if type(one).__module__ == "pygal"] == []
