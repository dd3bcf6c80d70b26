"""Cron expressions: what crontab(5) takes is taken, and what would surprise is refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.personas.cron import CronFields, parse_cron

ALL = parse_cron("* * * * *")


def test_stars_are_everything() -> None:
    expected = CronFields(
        tuple(range(60)), tuple(range(24)), tuple(range(1, 32)), tuple(range(1, 13)), tuple(range(7))
    )
    assert expected == ALL


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("*/25 * * * *", "minutes", (0, 25, 50)),
        ("5,1-3,2 * * * *", "minutes", (1, 2, 3, 5)),
        ("0 8-18/5 * * *", "hours", (8, 13, 18)),
        ("0 0 1,31 * *", "days", (1, 31)),
        ("0 0 * JAN-mar *", "months", (1, 2, 3)),
        ("0 0 * * 5-7", "weekdays", (0, 5, 6)),
        ("0 0 * * sun,WED", "weekdays", (0, 3)),
    ],
)
def test_forms(text: str, field: str, values: tuple[int, ...]) -> None:
    assert getattr(parse_cron(text), field) == values


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("* * * *", "does not have five fields"),
        ("* * * * * *", "does not have five fields"),
        ("60 * * * *", "'60' is not a valid minute: 0 to 59"),
        ("* 24 * * *", "'24' is not a valid hour"),
        ("* * 0 * *", "'0' is not a valid day"),
        ("* * * 13 *", "'13' is not a valid month"),
        ("* * * * 8", "'8' is not a valid weekday"),
        ("* * * mon *", "'mon' is not a valid month"),
        ("5-1 * * * *", "'5-1' is not a valid minute"),
        ("*/0 * * * *", "'*/0' is not a valid minute"),
        ("5/10 * * * *", "'5/10' is not a valid minute"),
        ("1,,2 * * * *", "'' is not a valid minute"),
        ("-1 * * * *", "'-1' is not a valid minute"),
        ("١ * * * *", "'١' is not a valid minute"),
        ("@hourly", "does not have five fields"),
        ("0 0 1 * mon", "write one trigger for each"),
        ("0 0 30 2 *", "day 30 is in none of its months"),
        ("0 0 31 4,6,9,11 *", "day 31 is in none of its months"),
    ],
)
def test_what_is_refused_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_cron(text)


@given(st.text(alphabet="*/-,0123456789 monjan", max_size=24) | st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        fields = parse_cron(text)
    except ValueError:
        return
    assert fields.minutes
    assert set(fields.days) <= set(range(1, 32))
    assert set(fields.weekdays) <= set(range(7))
