"""Outages by day: what a page draws as a line of 90 days."""

from __future__ import annotations

from datetime import UTC, datetime

from fleet.app.outages import days_down
from fleet.findings.outage import KEPT, OutageBook, OutageEnd
from tests.cli.test_status import OUT

NOW = datetime(2026, 11, 21, 11, 30, tzinfo=UTC)


def end(since: str, until: str) -> OutageEnd:
    return OutageEnd(fp="a" * 12, targets=("site",), since=since, until=until, seconds=1)


def test_an_outage_is_divided_between_its_days_and_an_open_one_ends_now() -> None:
    book = OutageBook(open=OUT, ended=(end("2026-11-18T23:50:00Z", "2026-11-19T00:00:30Z"),))
    days = days_down(book, "2026-11-18T08:00:00Z", NOW, days=5)
    assert [(one.day, one.minutes) for one in days] == [
        ("2026-11-17", None),
        ("2026-11-18", 10),
        ("2026-11-19", 1),
        ("2026-11-20", 0),
        ("2026-11-21", 30),
    ]


def test_a_full_book_says_nothing_of_the_days_before_it() -> None:
    book = OutageBook(ended=(end("2026-11-20T01:00:00Z", "2026-11-20T01:05:00Z"),) * KEPT)
    days = days_down(book, "2026-01-01T00:00:00Z", NOW)
    assert (len(days), days[0].minutes, days[-3].minutes, days[-1].minutes) == (90, None, None, 0)
    assert {one.minutes for one in days_down(OutageBook(), "", NOW)} == {None}
