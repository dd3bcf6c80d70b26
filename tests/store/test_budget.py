"""Spending: never beyond the limit, whoever races, and never handed back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from fleet.errors import BudgetExceeded, UsageError
from fleet.store.journal import Journal
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
        await one.trigger("r1", persona="p", key="k", platform="d", trigger="t", rung="observe", budget={})
        assert await _race([one, two], tries=30, limit=7) == 7
        assert await two.spent("r1") == {"writes": 7}
