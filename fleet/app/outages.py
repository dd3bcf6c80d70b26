"""Outages for commands and pages: from the journal, since the log itself may be unreachable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.findings.outage import FACTS, KEPT, OutageBook, read_book, shown
from fleet.store.journal import Journal
from fleet.text import clean


async def open_outages(journal: Journal) -> list[dict[str, Any]]:
    """Every open outage of every platform in the journal."""
    books = {key.removeprefix(FACTS): read_book(text) for key, text in (await journal.facts(FACTS)).items()}
    return [
        {
            "platform": platform,
            "fingerprint": book.open.fp,
            "severity": book.open.severity,
            "targets": list(book.open.targets),
            "since": book.open.since,
            "title": shown(book.open.title),
            "posted": await journal.posted(book.open.fp) is not None,
        }
        for platform, book in books.items()
        if book.open is not None
    ]


def line_of(outage: dict[str, Any]) -> str:
    """One outage in a line."""
    where = "" if outage["posted"] else "; not on the log yet"
    return clean(f"{outage['severity']}  {outage['platform']}: {outage['title']}{where}")


@dataclass(frozen=True, slots=True)
class DayDown:
    """One day (UTC): minutes for which the platform did not answer; None before anything is known of it."""

    day: str
    minutes: int | None


def days_down(book: OutageBook, first_run: str, now: datetime, days: int = 90) -> list[DayDown]:
    """The last days, the oldest first. `first_run` (ISO, "" for none) is when the fleet first looked."""
    spans = [(one.since, one.until) for one in book.ended]
    known = book.ended[0].until if len(book.ended) == KEPT else first_run  # a full book has lost older ones
    spans += [(book.open.since, now.isoformat())] if book.open else []
    moments = [tuple(datetime.fromisoformat(at) for at in span) for span in spans]
    midnight = datetime(now.year, now.month, now.day, tzinfo=UTC)
    made = []
    for back in range(days - 1, -1, -1):
        begin = midnight - timedelta(days=back)
        end, day = begin + timedelta(days=1), begin.date().isoformat()
        down = sum(
            max((min(until, end) - max(since, begin)).total_seconds(), 0.0) for since, until in moments
        )
        made.append(DayDown(day, math.ceil(down / 60) if known and day >= known[:10] else None))
    return made
