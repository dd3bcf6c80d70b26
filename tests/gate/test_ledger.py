"""The ledger of a run: its own limits, its persona's day, the fleet's day; and usage of a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fleet.config import DayLimits
from fleet.errors import BudgetExceeded
from fleet.gate.budget import Budget, Ledger, Reservation, day_limits
from fleet.personas.model import BudgetSection
from fleet.store.journal import Journal
from tests.doubles.journal import new_run
from tests.gate.conftest import HandClock

pytestmark = pytest.mark.anyio
Make = Callable[..., Ledger]


@pytest.fixture
async def journal(state: Path, clock: HandClock, anyio_backend: str) -> AsyncIterator[Journal]:
    async with await Journal.open(state / "fleet.db", clock=clock) as opened:
        for run, persona in (("r1", "qa-x"), ("r2", "qa-x"), ("r3", "qa-y")):
            await opened.trigger(new_run(run, persona))
        yield opened


@pytest.fixture
def make(journal: Journal) -> Make:
    def make(run: str = "r1", *, fleet: dict[Any, int] | None = None, **section: Any) -> Ledger:
        budget = Budget.of(BudgetSection.model_validate({"calls": 5, "writes": 3, "wall": "1m"} | section))
        return Ledger(journal, run, budget, lambda: fleet or {})

    return make


async def test_the_smallest_of_three_limits_is_what_is_left(make: Make) -> None:
    day, fleet = {"calls": 4}, {"calls": 3, "reports": 2}
    one, two, other = (
        make("r1", day=day, fleet=fleet),
        make("r2", day=day, fleet=fleet),
        make("r3", fleet=fleet),
    )
    assert await one.spend("calls") == 2
    assert await two.spend("calls") == 1
    ledgers = (one, make("r1", calls=1, day=day, fleet=fleet), make("r1", day={"calls": 2}))
    rooms = [(await ledger.room())["calls"] for ledger in ledgers]
    assert [(room.left, room.limit) for room in rooms] == [
        (1, "the budget of 3 calls a day of the fleet"),
        (0, "the budget of 1 call"),
        (0, "the budget of 2 calls a day of this persona"),
    ]
    assert await other.left() == {"calls": 1, "writes": 3, "reports": 2, "closing": 1, "tokens": 0}
    assert await other.spend("calls") == 0
    with pytest.raises(
        BudgetExceeded, match="the budget of 3 calls a day of the fleet does not cover 1 more"
    ):
        await other.spend("calls")


async def test_midnight_opens_the_day_s_budget_and_not_the_run_s(make: Make, clock: HandClock) -> None:
    ledger = make(calls=3, day={"calls": 2})
    await ledger.spend("calls", 2)
    with pytest.raises(BudgetExceeded, match="2 calls a day of qa-x") as refused:
        await ledger.spend("calls")
    assert (
        refused.value.remedy == "raise budget.day.calls in the persona file, or wait for the next day (UTC)"
    )
    clock.seconds = 86_400.0
    assert await ledger.spend("calls") == 0
    with pytest.raises(BudgetExceeded, match="the budget of 3 calls does not"):
        await ledger.spend("calls")


async def test_the_closing_report_is_possible_when_the_day_s_reports_are_spent(make: Make) -> None:
    ledger = make(reports=5, day={"reports": 1, "writes": 0}, fleet={"reports": 1, "writes": 0})
    await ledger.spend("reports")
    for unit in ("reports", "writes"):
        with pytest.raises(BudgetExceeded, match="a day of qa-x"):
            await ledger.spend(unit)
    assert await ledger.spend("closing") == 0


async def test_a_call_of_a_model_is_reserved_and_settled(make: Make, journal: Journal) -> None:
    ledger = make(tokens=1000, usd=0.5, day={"usd": 0.75}, fleet={"usd_micro": 10_000_000})
    held = await ledger.reserve(tokens=600, usd=Decimal("0.4"))
    assert (held.tokens, held.usd) == (600, Decimal("0.4"))
    assert await journal.spent("r1") == {"tokens": 600, "usd_micro": 400_000}
    await ledger.settle(held, tokens=100, usd=Decimal("0.0000011"))
    assert await journal.spent("r1") == {"tokens": 100, "usd_micro": 2}
    await ledger.settle(held, tokens=0, usd=Decimal(0))
    assert list((await journal.spent_in("r1")).values()) == [{"tokens": 100, "usd_micro": 2}] * 3


async def test_what_does_not_fit_in_one_unit_counts_in_none(make: Make, journal: Journal) -> None:
    ledger = make(tokens=1000, usd=0.5, day={"usd": 0.25})
    with pytest.raises(
        BudgetExceeded, match=r"the budget of 0\.25 usd a day of qa-x does not cover 0\.3 more"
    ):
        await ledger.reserve(tokens=1, usd=Decimal("0.3"))
    with pytest.raises(BudgetExceeded, match="the budget of 1000 tokens does not cover 1001 more"):
        await ledger.reserve(tokens=1001, usd=Decimal("0.1"))
    assert await journal.spent_in("r1") == {"run": {}, "persona": {}, "fleet": {}}


async def test_more_than_was_reserved_is_charged_and_ends_it(make: Make, journal: Journal) -> None:
    ledger = make(tokens=100)
    held = await ledger.reserve(tokens=90, usd=None)
    await ledger.settle(held, tokens=250, usd=None)
    assert (await journal.spent("r1"), (await ledger.left())["tokens"]) == ({"tokens": 250}, 0)
    for tokens in (0, 1):
        with pytest.raises(BudgetExceeded, match="the budget of 100 tokens"):
            await ledger.reserve(tokens=tokens, usd=None)


@pytest.mark.parametrize(
    ("section", "fleet", "key"),
    [
        ({"usd": 1}, {}, "budget.usd in the persona file"),
        ({"day": {"usd": 1.5}}, {}, "budget.day.usd in the persona file"),
        ({}, {"usd_micro": 9}, "budget.usd in fleet.toml"),
    ],
)
async def test_an_unknown_price_is_refused_where_a_budget_is_in_money(
    make: Make, journal: Journal, section: dict[str, Any], fleet: dict[Any, int], key: str
) -> None:
    ledger = make(tokens=10, fleet=fleet, **section)
    with pytest.raises(BudgetExceeded, match="the price of the model is unknown") as refused:
        await ledger.reserve(tokens=1, usd=None)
    assert refused.value.remedy == f"set the model's price, or remove {key}"
    assert await journal.spent("r1") == {}
    await ledger.reserve(tokens=1, usd=Decimal("0.000001"))


async def test_without_a_limit_in_money_tokens_are_the_limit(make: Make, journal: Journal) -> None:
    ledger = make(tokens=10)
    held = await ledger.reserve(tokens=4, usd=None)
    await ledger.settle(held, tokens=None, usd=Decimal("0.25"))
    await ledger.reserve(tokens=6, usd=Decimal("0.5"))
    assert await journal.spent("r1") == {"tokens": 10, "usd_micro": 750_000}
    with pytest.raises(BudgetExceeded, match="the budget of 10 tokens"):
        await ledger.reserve(tokens=1, usd=None)


async def test_no_tokens_in_the_persona_means_no_model(make: Make) -> None:
    with pytest.raises(BudgetExceeded, match="the budget of 0 tokens does not cover 1 more") as refused:
        await make().reserve(tokens=1, usd=None)
    assert refused.value.remedy == "raise budget.tokens in the persona file"
    with pytest.raises(BudgetExceeded, match="the budget of 0 usd"):
        await make(tokens=9, usd=0).reserve(tokens=1, usd=Decimal("0.000001"))


async def test_unknown_usage_leaves_the_reserve_spent(make: Make, journal: Journal) -> None:
    ledger = make(tokens=100, usd=1)
    held = await ledger.reserve(tokens=90, usd=Decimal(1))
    await ledger.settle(held, tokens=None, usd=None)
    await ledger.settle(held, tokens=1, usd=Decimal(0))
    assert await journal.spent("r1") == {"tokens": 90, "usd_micro": 1_000_000}


async def test_a_process_that_dies_in_a_call_has_spent_what_it_reserved(
    make: Make, state: Path, clock: HandClock
) -> None:
    held = await make(tokens=100).reserve(tokens=90, usd=None)
    budget = Budget.of(BudgetSection(calls=5, tokens=100))
    async with await Journal.open(state / "fleet.db", clock=clock) as reopened:
        ledger = Ledger(reopened, "r1", budget)
        assert (await ledger.left())["tokens"] == 10
        await ledger.settle(held, tokens=20, usd=None)
        assert (await ledger.left())["tokens"] == 80


async def test_a_call_over_midnight_counts_in_the_day_in_which_it_began(
    make: Make, journal: Journal, clock: HandClock
) -> None:
    clock.seconds = 86_399.0
    ledger = make(tokens=1000, day={"tokens": 100})
    held = await ledger.reserve(tokens=100, usd=None)
    clock.seconds = 86_400.0
    await ledger.settle(held, tokens=30, usd=None)
    assert (await journal.spent_in("r1"))["persona"] == {}
    await ledger.reserve(tokens=100, usd=None)
    clock.seconds = 86_399.0
    assert await journal.spent_in("r1") == {
        "run": {"tokens": 130},
        "persona": {"tokens": 30},
        "fleet": {"tokens": 30},
    }


@pytest.mark.parametrize(
    ("usd", "error"),
    [(Decimal(-1), ValueError), (Decimal("NaN"), ValueError), (Decimal("inf"), ValueError), (0.5, TypeError)],
)
async def test_only_amounts_of_money_are_money(
    make: Make, journal: Journal, usd: Any, error: type[Exception]
) -> None:
    ledger = make(tokens=10, usd=1)
    with pytest.raises(error):
        await ledger.reserve(tokens=1, usd=usd)
    held = await ledger.reserve(tokens=1, usd=Decimal("0.5"))
    with pytest.raises(error):
        await ledger.settle(held, tokens=1, usd=usd)
    with pytest.raises(ValueError, match="whole numbers"):
        await ledger.settle(held, tokens=-5, usd=None)
    assert await journal.spent("r1") == {"tokens": 1, "usd_micro": 500_000}


async def test_an_id_that_nobody_was_given_settles_nothing(make: Make, journal: Journal) -> None:
    await make(tokens=10).settle(Reservation("ffff", 5, None), tokens=0, usd=None)
    assert await journal.spent_in("r1") == {"run": {}, "persona": {}, "fleet": {}}


def test_limits_of_a_day_are_what_is_set() -> None:
    assert day_limits(None) == day_limits(DayLimits()) == {}
    section = DayLimits.model_validate({"calls": 7, "usd": 0.1})
    assert day_limits(section) == {"calls": 7, "usd_micro": 100_000}
    budget = Budget.of(
        BudgetSection.model_validate({"calls": 1, "tokens": 5, "usd": 2, "day": {"writes": 0}})
    )
    assert (budget.tokens, budget.usd_micro, budget.day) == (5, 2_000_000, {"writes": 0})
