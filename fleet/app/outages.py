"""Open outages for the commands: from the journal, since the log itself may be unreachable."""

from __future__ import annotations

from typing import Any

from fleet.findings.outage import FACTS, read_book, shown
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
