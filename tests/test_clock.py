"""Spans of time in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet.clock import YEAR_9999, iso_seconds, span


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(seconds=-5), "under a minute"),
        (timedelta(seconds=59), "under a minute"),
        (timedelta(minutes=1), "1 min"),
        (timedelta(minutes=119), "119 min"),
        (timedelta(hours=2), "2 h"),
        (timedelta(hours=47), "47 h"),
        (timedelta(days=2), "2 days"),
    ],
)
def test_a_span_is_in_one_unit(length: timedelta, said: str) -> None:
    begin = YEAR_9999 // 2
    assert span(iso_seconds(begin), iso_seconds(begin + int(length.total_seconds()))) == said
