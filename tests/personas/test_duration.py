"""Durations: a number and s, m or h, nothing else."""

from __future__ import annotations

import pytest

from fleet.personas.duration import parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1.0), ("30s", 30.0), ("10m", 600.0), ("6h", 21_600.0)])
def test_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0s", "01s", "-1s", "1", "s", "1 s", "1.5h", "1d", "1S", "1s\n", "٣s", "9" * 7 + "s"]
)
def test_not_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="write a number and s, m or h"):
        parse_duration(text)
