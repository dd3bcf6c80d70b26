"""The one open outage of a platform, in the journal: noticed once and ended once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from fleet.clock import iso
from fleet.findings.outage import FACTS, Outage, OutageBook, OutageEnd, read_book
from fleet.runs.call.targets import spoken, words
from fleet.store.journal import Journal

Make = Callable[[str], Outage]
"""Words an outage that began at this time (ISO)."""


def key_of(platform: str) -> str:
    """Journal key of a platform's outages."""
    return FACTS + platform


async def book_of(journal: Journal, platform: str) -> OutageBook:
    """The current outages of a platform."""
    return read_book(await journal.get(key_of(platform)))


def noticed(
    book: OutageBook, targets: Collection[str], make: Make, now: datetime, *, unseen: Collection[str] = ()
) -> tuple[OutageBook, OutageEnd | None]:
    """The book with an open outage of exactly these targets, and the end of one of other targets. Pure.

    An outage that changes its extent keeps its beginning. `unseen` targets have not answered.
    """
    known = book.open
    if known is None:
        return OutageBook(open=make(iso(now)), ended=book.ended), None
    back, more = set(known.targets) - set(targets) - set(unseen), set(targets) - set(known.targets)
    if not back and not more:
        return book, None
    if back and not set(known.targets) & set(targets):
        why, since = f"answered again, when {spoken(sorted(more))} did not", iso(now)
    else:
        others = [f"{spoken(sorted(back))} answered again"] * bool(back)
        others += [f"{spoken(sorted(more))} went down too"] * bool(more)
        why, since = f"continues as another item: {words(tuple(others))}", known.since
    end = _end(known, now, why)
    return book.closed(end, make(since)), end


def answered(
    book: OutageBook, names: Collection[str], all_: Collection[str], now: datetime
) -> tuple[OutageBook, OutageEnd | None]:
    """The book without its open outage, if all its targets answered. Pure.

    A target missing from the profile does not count.
    """
    known = book.open
    if known is None or not ((set(known.targets) & set(all_)) or set(all_)) <= set(names):
        return book, None
    end = _end(known, now, f"{spoken(known.targets)} answered")
    return book.closed(end), end


async def settle(
    journal: Journal, platform: str, step: Callable[[OutageBook], tuple[OutageBook, OutageEnd | None]]
) -> tuple[OutageBook, OutageEnd | None]:
    """Apply a step to the journal's current book; only one process can take it."""
    while True:
        text = await journal.get(key_of(platform))
        before = read_book(text)
        after, end = step(before)
        if after == before or await journal.swap(key_of(platform), text, after.model_dump_json()):
            return after, end


def _end(known: Outage, now: datetime, why: str) -> OutageEnd:
    seconds = max((now - datetime.fromisoformat(known.since)).total_seconds(), 0.0)
    return OutageEnd(
        fp=known.fp, targets=known.targets, since=known.since, until=iso(now), seconds=seconds, why=why
    )
