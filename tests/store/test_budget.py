"""Spending: never beyond the limit, whoever races, and never handed back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from fleet.errors import BudgetExceeded, UsageError
from fleet.store.journal import Journal
from fleet.store.tables.units import Limits, Scope
from tests.doubles.journal import new_run
from tests.store.conftest import Places

pytestmark = pytest.mark.anyio
Queue = Callable[..., Awaitable[bool]]


async def test_what_is_left_and_the_fence(journal: Journal, queue: Queue) -> None:
    await queue()
    assert await journal.spend("r1", "writes", 2, 3) == 1
    with pytest.raises(BudgetExceeded, match="the budget of 3 writes does not cover 2 more"):
        await journal.spend("r1", "writes", 2, 3)
    assert await journal.spend("r1", "writes", 1, 3) == 0
    assert await journal.spend("r1", "writes", 0, 3) == 0
    with pytest.raises(BudgetExceeded):
        await journal.spend("r1", "writes", 1, 3)
    assert await journal.spend("r1", "calls", 1, 3) == 2
    assert await journal.spent("r1") == {"writes": 3, "calls": 1}


async def test_a_first_amount_beyond_the_limit_counts_nothing(journal: Journal, queue: Queue) -> None:
    await queue()
    with pytest.raises(BudgetExceeded):
        await journal.spend("r1", "writes", 1, 0)
    assert await journal.spent("r1") == {}


async def test_a_lowered_limit_is_exceeded_at_once(journal: Journal, queue: Queue) -> None:
    await queue()
    await journal.spend("r1", "calls", 5, 10)
    with pytest.raises(BudgetExceeded):
        await journal.spend("r1", "calls", 0, 4)


async def test_wei_do_not_overflow(journal: Journal, queue: Queue) -> None:
    await queue()
    assert await journal.spend("r1", "wei", 2**63 - 2, 2**80) == 1
    with pytest.raises(BudgetExceeded):
        await journal.spend("r1", "wei", 2, 2**80)
    with pytest.raises(BudgetExceeded):
        await journal.spend("r1", "wei", 2**70, 2**80)
    assert await journal.spent("r1") == {"wei": 2**63 - 2}


@pytest.mark.parametrize(("amount", "limit"), [(-1, 5), (1, -1), (1.0, 5), (True, 5), (1, float("inf"))])
async def test_only_whole_numbers_from_0_up(journal: Journal, queue: Queue, amount: int, limit: int) -> None:
    await queue()
    with pytest.raises(ValueError, match="whole numbers"):
        await journal.spend("r1", "calls", amount, limit)


async def test_a_run_that_is_not_there_has_no_budget(journal: Journal) -> None:
    with pytest.raises(UsageError, match="no such run"):
        await journal.spend("nope", "calls", 1, 5)


async def _race(journals: list[Journal], tries: int, limit: int) -> int:
    won = 0

    async def spend(journal: Journal) -> None:
        nonlocal won
        try:
            await journal.spend("r1", "writes", 1, limit)
        except BudgetExceeded:
            return
        won += 1

    async with anyio.create_task_group() as tasks:
        for n in range(tries):
            tasks.start_soon(spend, journals[n % len(journals)])
    return won


async def test_many_race_for_the_last_unit(journal: Journal, queue: Queue) -> None:
    await queue()
    assert await _race([journal], tries=30, limit=7) == 7
    assert await journal.spent("r1") == {"writes": 7}


async def test_two_openings_race_for_the_last_unit(places: Places) -> None:
    place = places()
    async with await Journal.open(place) as one, await Journal.open(place) as two:
        await one.trigger(new_run("r1", key="k"))
        assert await _race([one, two], tries=30, limit=7) == 7
        assert await two.spent("r1") == {"writes": 7}


class Days:
    """A clock that a test sets to a day of January."""

    day = 1

    def now(self) -> datetime:
        return datetime(2026, 1, self.day, 23, 59, 59, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


async def _runs(journal: Journal) -> None:
    for run, persona in (("r1", "qa-x"), ("r2", "qa-x"), ("r3", "qa-y")):
        await journal.trigger(new_run(run, persona))


def _everywhere(**spent: int) -> dict[Scope, dict[str, int]]:
    return {"run": spent, "persona": spent, "fleet": spent}


async def test_one_spend_counts_three_times_or_not_at_all(place: Path | str) -> None:
    clock = Days()
    async with await Journal.open(place, clock=clock) as journal:
        await _runs(journal)
        day: Limits = {"persona": {"writes": 3}, "fleet": {"writes": 4}}
        assert await journal.spend("r1", "writes", 1, 9, day=day) == 2
        assert await journal.spend("r2", "writes", 2, 2, day=day) == 0
        with pytest.raises(BudgetExceeded, match="the budget of 3 writes a day of qa-x") as refused:
            await journal.spend("r1", "writes", 1, 9, day=day)
        assert "budget.day.writes in the persona file, or wait" in refused.value.remedy
        with pytest.raises(BudgetExceeded, match="the budget of 4 writes a day of the fleet") as refused:
            await journal.spend("r3", "writes", 2, 9, day=day)
        assert "budget.writes in fleet.toml, or wait" in refused.value.remedy
        with pytest.raises(BudgetExceeded, match="the budget of 0 writes does not") as refused:
            await journal.spend("r3", "writes", 1, 0, day=day)
        assert refused.value.remedy == "raise budget.writes in the persona file"
        assert await journal.spent("r3") == {}
        assert await journal.spent_today() == {"": {"writes": 3}, "qa-x": {"writes": 3}}
        clock.day = 2
        assert await journal.spent_today() == {"": {}}
        assert await journal.spend("r1", "writes", 1, 9, day=day) == 2
        assert await journal.spent_in("r1") == {
            "run": {"writes": 2},
            "persona": {"writes": 1},
            "fleet": {"writes": 1},
        }


async def test_a_reservation_is_handed_back_once(journal: Journal) -> None:
    await _runs(journal)
    limits: Limits = {"run": {"tokens": 100}, "fleet": {"tokens": 100}}
    held = await journal.reserve("r1", {"tokens": 80}, limits)
    await journal.settle(held, {"tokens": 30})
    for _ in range(2):
        await journal.settle(held, {"tokens": 0})
    other = await journal.reserve("r1", {"tokens": 70}, limits)
    assert held != other
    await journal.settle(held, {"tokens": 0})
    assert await journal.spent_in("r1") == _everywhere(tokens=100)
    with pytest.raises(UsageError, match="no such run"):
        await journal.reserve("nope", {"tokens": 1}, limits)
    with pytest.raises(BudgetExceeded, match="the budget of 0 usd does not cover 1 more"):
        await journal.reserve("r2", {"usd_micro": 1_000_000}, limits)


async def test_many_settle_one_reservation_at_once(journal: Journal) -> None:
    await _runs(journal)
    held = await journal.reserve("r1", {"tokens": 80}, {"run": {"tokens": 100}})
    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(journal.settle, held, {"tokens": 10})
    assert await journal.spent_in("r1") == _everywhere(tokens=10)


async def test_an_overshoot_stays_within_what_a_column_holds(journal: Journal) -> None:
    await _runs(journal)
    held = await journal.reserve("r1", {"tokens": 5}, {"run": {"tokens": 9}})
    await journal.settle(held, {"tokens": 2**80})
    assert await journal.spent("r1") == {"tokens": 2**63 - 1}
    with pytest.raises(BudgetExceeded):
        await journal.spend("r1", "tokens", 0, 9)


@pytest.mark.parametrize("scope", ["persona", "fleet"])
async def test_runs_race_for_the_last_unit_of_a_day(places: Places, scope: Scope) -> None:
    """Over two connections; the runs' own limits would allow more."""
    place, won = places(), []
    day: Limits = {scope: {"writes": 7}}
    async with await Journal.open(place, busy_s=30) as one, await Journal.open(place, busy_s=30) as two:
        await _runs(one)

        async def spend(journal: Journal, run: str) -> None:
            try:
                await journal.spend(run, "writes", 1, 5, day=day)
            except BudgetExceeded:
                return
            won.append(run)

        async with anyio.create_task_group() as tasks:
            for number in range(24):
                tasks.start_soon(spend, (one, two)[number % 2], ("r1", "r2")[number % 3 % 2])
        assert len(won) == 7
        assert (await two.spent_today())[""] == {"writes": 7}
        assert sum([(await one.spent(run)).get("writes", 0) for run in ("r1", "r2")]) == 7
