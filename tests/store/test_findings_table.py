"""Findings and the outbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from fleet.errors import UsageError
from fleet.store.journal import Journal
from fleet.store.rows import TRIAL, FindingRow, FindingState
from tests.doubles.journal import new_run

pytestmark = pytest.mark.anyio
Queue = Callable[..., Awaitable[bool]]
FP = "0123456789ab"
OLD, NEW = "2026-11-20T00:00:00Z", "2026-11-28T00:00:00Z"


def _finding(run_id: str = "r1", **fields: object) -> FindingRow:
    return FindingRow(run_id=run_id, fingerprint=FP, **{"title": "t"} | fields)  # type: ignore[arg-type]


async def test_a_defect_is_one_row_per_run_with_a_count(journal: Journal, queue: Queue) -> None:
    await queue("r1")
    await queue("r2")
    assert await journal.add_finding(_finding(data={"steps": [1]}))
    assert not await journal.add_finding(_finding(title="other words"))
    assert not await journal.add_finding(_finding(times=3))
    assert await journal.add_finding(_finding("r2"))
    first, second = await journal.findings()
    assert (first.times, first.title, first.data, first.index) == (5, "t", {"steps": [1]}, -1)
    assert (second.run_id, second.times) == ("r2", 1)
    assert [f.run_id for f in await journal.findings("r2")] == ["r2"]


async def test_the_way_to_the_log(journal: Journal, queue: Queue) -> None:
    await queue()
    await journal.add_finding(_finding())
    assert await journal.posted(FP) is None
    await journal.set_finding("r1", FP, confirmed=2, tries=2)
    await journal.set_finding("r1", FP, state="confirmed", confirmed=3, tries=3, evidence="sha256:ab")
    assert await journal.claim_posting("r1", FP)
    await journal.set_finding("r1", FP, envelope="qa/v1 \ud800")
    await journal.set_finding("r1", FP, state="posted", tx="0xaa", index=4)
    row = await journal.posted(FP)
    assert row is not None
    assert (row.state, row.confirmed, row.tries, row.tx, row.index) == ("posted", 3, 3, "0xaa", 4)
    assert (row.evidence, row.envelope) == ("sha256:ab", "qa/v1 \\ud800")
    assert await journal.findings(states=("raised", "posting")) == []


@pytest.mark.parametrize("after", ["posting", "posted"])
async def test_nothing_unjudged_is_posted(journal: Journal, queue: Queue, after: str) -> None:
    await queue()
    await journal.add_finding(_finding())
    with pytest.raises(ValueError, match=f"is raised: it cannot become {after}"):
        await journal.set_finding("r1", FP, state=after, tx="0xaa")
    assert not await journal.claim_posting("r1", FP)
    (row,) = await journal.findings()
    assert (row.state, row.tx) == ("raised", "")


@pytest.mark.parametrize("before", ["flaky", "unverified", "dropped"])
async def test_what_is_not_confirmed_is_not_posted(
    journal: Journal, queue: Queue, before: FindingState
) -> None:
    await queue()
    await journal.add_finding(_finding(state=before))
    assert not await journal.claim_posting("r1", FP)
    with pytest.raises(ValueError, match=f"is {before}: it cannot become posting"):
        await journal.set_finding("r1", FP, state="posting")


async def test_one_run_at_a_time_has_a_fingerprint_in_the_outbox(journal: Journal, queue: Queue) -> None:
    for run_id in ("r1", "r2"):
        await queue(run_id)
        await journal.add_finding(_finding(run_id, state="confirmed"))
    assert await journal.claim_posting("r1", FP)
    assert not await journal.claim_posting("r1", FP)
    assert not await journal.claim_posting("r2", FP)
    await journal.set_finding("r1", FP, state="posted", index=0)
    assert await journal.claim_posting("r2", FP)


async def test_mistakes_are_named(journal: Journal, queue: Queue) -> None:
    await queue()
    with pytest.raises(UsageError, match="no finding feed in run r1"):
        await journal.set_finding("r1", "feed", tries=1)
    await journal.add_finding(_finding())
    with pytest.raises(ValueError, match="not a field that changes: probe, surface"):
        await journal.set_finding("r1", FP, probe="x", surface="y")
    with pytest.raises(UsageError, match="no such run"):
        await journal.add_finding(_finding("nope"))


async def test_what_a_page_reads_is_part_of_what_there_is(journal: Journal, queue: Queue) -> None:
    await journal.trigger(
        new_run("tried", "qa-smoke", key="t", platform="devnet", trigger=TRIAL, budget={"calls": 5})
    )
    rows: tuple[tuple[str, str, FindingState, str, dict[str, Any]], ...] = (
        ("r1", "aa" * 6, "raised", OLD, {}),
        ("r2", "aa" * 6, "posted", OLD, {"known_as": ["ee" * 6]}),
        ("r2", "bb" * 6, "posted", OLD, {"why": "ee" * 6}),
        ("r3", "cc" * 6, "dropped", NEW, {}),
        ("tried", "dd" * 6, "raised", NEW, {"known_as": ["ee" * 6]}),
    )
    for run, name, state, at, data in rows:
        await queue(run)
        row = FindingRow(run_id=run, fingerprint=name, title="t", at=at, data=data)
        await journal.add_finding(replace(row, state=state))
    assert await journal.states_of() == {"": {"raised": 1, "posted": 2, "dropped": 1}}
    by_run = await journal.states_of(["r2", "tried", "none"])
    assert by_run == {"r2": {"posted": 2}, "tried": {"raised": 1}, "none": {}}
    moving = [(row.run_id, row.fingerprint[:2]) for row in await journal.on_their_way(NEW)]
    assert moving == [("r1", "aa"), ("r2", "aa"), ("r3", "cc")]
    named = [row.run_id for row in await journal.findings_named(["ee" * 6, "cc" * 6])]
    assert named == ["r2", "r3"]  # a word of `why` is no name
    assert await journal.findings_named([]) == []
