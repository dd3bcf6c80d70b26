"""What the journal forgets of a run that is over for good, and what it never does; on every journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from fleet.clock import SystemClock
from fleet.store.journal import Journal
from fleet.store.rows import EffectKind, EffectState, FindingRow, FindingState
from fleet.store.tables.history import KEPT
from fleet.store.tables.retention import CHUNK
from tests.doubles.journal import new_run

pytestmark = pytest.mark.anyio

Queue = Callable[..., Awaitable[bool]]


class SetClock(SystemClock):
    """Noon of the day that it was set to."""

    day = 20

    def now(self) -> datetime:
        return datetime(2026, 11, self.day, 12, tzinfo=UTC)


async def ended(journal: Journal, queue: Queue, run: str = "r1") -> None:
    await queue(run)
    assert await journal.claim(run, pid=1, pid_start=1)
    assert await journal.finish(run, "done")


async def effect(journal: Journal, kind: EffectKind, state: EffectState, run: str = "r1") -> None:
    number = await journal.intend(run, kind, "a", {})
    if state == "released" and kind in ("name", "key"):
        await journal.resolve(number, "done")
    if state != "open":
        await journal.resolve(number, state)


async def test_a_run_without_an_outcome_is_not_over(journal: Journal, queue: Queue) -> None:
    await queue("r1")
    assert await journal.over(["r1"]) == {}
    await journal.claim("r1", pid=1, pid_start=1)
    assert await journal.over(["r1"]) == {}
    await journal.start_settling("r1")
    assert await journal.over(["r1"]) == {}
    await journal.finish("r1", "done")
    assert await journal.over(["r1", "unknown"]) == {"r1": (await journal.run("r1")).ended}


@pytest.mark.parametrize(
    ("kind", "state", "over"),
    [
        ("tx", "open", False),
        ("tx", "done", True),
        ("tx", "failed", True),
        ("post", "open", False),
        ("post", "done", True),
        ("name", "open", False),
        ("name", "done", False),
        ("name", "released", True),
        ("name", "failed", True),
        ("key", "open", False),
        ("key", "done", False),
        ("key", "released", True),
        ("jail", "open", False),
        ("jail", "done", True),
        ("stipend", "open", False),
        ("stipend", "done", True),
    ],
)
async def test_what_is_owed_or_held_keeps_a_run(
    journal: Journal, queue: Queue, kind: EffectKind, state: EffectState, over: bool
) -> None:
    await ended(journal, queue)
    await effect(journal, "tx", "done")
    await effect(journal, kind, state)
    assert set(await journal.over(["r1"])) == ({"r1"} if over else set())


@pytest.mark.parametrize(
    ("state", "over"),
    [
        ("raised", False),
        ("confirmed", False),
        ("flaky", False),
        ("unverified", False),
        ("posting", False),
        ("posted", False),
        ("dropped", True),
        ("repeated", True),
    ],
)
async def test_evidence_is_kept_for_as_long_as_its_finding(
    journal: Journal, queue: Queue, state: FindingState, over: bool
) -> None:
    await ended(journal, queue)
    await journal.add_finding(FindingRow(run_id="r1", fingerprint="aa", state="repeated"))
    await journal.add_finding(FindingRow(run_id="r1", fingerprint="bb", state=state))
    assert set(await journal.over(["r1"])) == ({"r1"} if over else set())


async def test_the_details_go_and_the_run_stays(journal: Journal, queue: Queue) -> None:
    for run in ("r1", "r2"):
        await ended(journal, queue, run)
        await effect(journal, "tx", "done", run)
        await journal.spend(run, "calls", 2, 5)
        await journal.reserve(run, {"tokens": 7}, {"run": {"tokens": 9}})
    await journal.add_finding(FindingRow(run_id="r1", fingerprint="aa", state="repeated"))
    before, today = await journal.run("r1"), await journal.spent_today()
    assert await journal.forget("r1")
    assert await journal.run("r1") == before
    assert await journal.effects("r1") == []
    assert [row.fingerprint for row in await journal.findings("r1")] == ["aa"]
    assert len(await journal.effects("r2")) == 1
    assert await journal.spent_by(["r1", "r2"]) == {"r1": {}, "r2": {"calls": 2, "tokens": 7}}
    assert await journal.spent_today() == today  # the day's budget is not handed back
    assert not await queue("r3", key="r1")  # a firing is one run, for ever
    assert await journal.forget("r1")  # again, after a crash: nothing is left to do


async def test_what_is_not_over_is_not_forgotten(journal: Journal, queue: Queue) -> None:
    await ended(journal, queue)
    await effect(journal, "name", "done")
    await journal.spend("r1", "calls", 2, 5)
    assert not await journal.forget("r1")
    assert not await journal.forget("unknown")
    assert (len(await journal.effects("r1")), await journal.spent("r1")) == (1, {"calls": 2})


async def test_more_runs_than_one_statement_takes(journal: Journal, queue: Queue) -> None:
    await ended(journal, queue)
    many = [f"u{number}" for number in range(2 * CHUNK)]
    assert set(await journal.over([*many, "r1"])) == {"r1"}


async def test_days_and_figures_that_nobody_asks_for_go(place: str) -> None:
    clock = SetClock()
    async with await Journal.open(place, clock=clock) as journal:
        await journal.trigger(new_run("r1"))
        for day, amount in ((20, 1), (21, 2), (22, 4)):
            clock.day = day
            await journal.spend("r1", "calls", amount, 9)
        for value in range(KEPT + 5):
            await journal.note("m", float(value))
        await journal.note("other", 1.0)
        usual = await journal.history()
        await journal.forget_before("2026-11-22")
        assert await journal.spent_today() == {"": {"calls": 4}, "p": {"calls": 4}}
        assert await journal.spent("r1") == {"calls": 7}
        assert await journal.history() == usual == {"m": 14.5}  # of 5 to 24
        assert await journal.noted() == {"m": KEPT, "other": 1}
        clock.day = 21
        assert await journal.spent_today() == {"": {}}
        await journal.note("m", 1e3)
        assert await journal.history() == {"m": 15.5}  # the latest `KEPT` were all there
