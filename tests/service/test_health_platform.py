"""Whether the platform answers: from the book of outages and the last runs."""

from __future__ import annotations

import pytest

from fleet.findings.outage import Outage, OutageBook
from fleet.service.snapshot import UNKNOWN, PlatformReach, platform_reach
from fleet.store.rows import RunRow

OUT = Outage(
    fp="a" * 12,
    targets=("site",),
    since="2026-11-21T10:00:00Z",
    run="r",
    persona="qa-smoke",
    severity="high",
    title="platform-unreachable: site refused",
)


def ended(persona: str, outcome: str, at: str, detail: str = "") -> RunRow:
    return RunRow(
        run_id=f"{persona}{at}",
        persona=persona,
        key=at,
        platform="p",
        trigger="t",
        rung="observe",
        budget={},
        state="ended",
        created="",
        outcome=outcome,
        detail=detail,
        ended=at,
    )


DONE = ended("qa-a", "done", "2026-11-21T09:00:00Z")
LATER = "2026-11-21T09:30:00Z"


@pytest.mark.parametrize(
    ("book", "rows", "expected"),
    [
        (OutageBook(), [], UNKNOWN),
        (OutageBook(), [DONE], PlatformReach(up=True, since=DONE.ended, by="qa-a", why="")),
        (
            OutageBook(open=OUT),
            [DONE],
            PlatformReach(
                up=False,
                since=OUT.since,
                by="qa-smoke",
                why="Platform does not answer: outage of site refused",
            ),
        ),
        (
            OutageBook(),
            [DONE, ended("qa-b", "could_not_tell", LATER, "no control answered")],
            PlatformReach(since=LATER, by="qa-b", why="no control answered"),
        ),
        (
            OutageBook(),
            [DONE, ended("qa-b", "failed", LATER, "health check: All connection attempts failed")],
            PlatformReach(since=LATER, by="qa-b", why="health check: All connection attempts failed"),
        ),
        (
            OutageBook(),
            [DONE, ended("qa-b", "cancelled", LATER), ended("qa-c", "crashed", LATER)],
            PlatformReach(up=True, since=DONE.ended, by="qa-a", why=""),
        ),
    ],
)
def test_the_newest_look_counts_and_an_open_outage_before_it(
    book: OutageBook, rows: list[RunRow], expected: PlatformReach
) -> None:
    assert platform_reach(book, rows) == expected
