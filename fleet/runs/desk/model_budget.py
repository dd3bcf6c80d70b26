"""The cost of a model: reserved before a call, settled after it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from fleet.events.model import TurnUsage
from fleet.gate.budget import Ledger, Reservation
from fleet.runs.driver_choice import Price
from fleet.text import line


class ModelBudget:
    """One run's reservations. An unsettled reservation stays spent."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._held: Reservation | None = None

    async def reserve(self, tokens: int, price: Price) -> None:
        """Reserve the most that a call may cost, for any mix of tokens; raises BudgetExceeded."""
        ways = (
            TurnUsage(input_tokens=tokens, output_tokens=0, model_calls=1),
            TurnUsage(input_tokens=0, output_tokens=tokens, model_calls=1),
        )
        costs = [price(way) for way in ways]
        usd = None if None in costs else max(cost for cost in costs if cost is not None)
        self._held = await self._ledger.reserve(tokens=tokens, usd=usd)

    async def settle(self, usage: TurnUsage | None, price: Price) -> None:
        """Charge the actual cost of a call; unknown figures leave the reservation spent."""
        held, self._held = self._held, None
        if held is None or usage is None:
            return
        usage = checked(usage)
        if usage.input_tokens is None or usage.output_tokens is None:
            await self._ledger.settle(held, tokens=None, usd=None)
            return
        # the higher of the provider's figure and the one computed from its prices
        costs = [cost for cost in (_dollars(usage.cost_usd), price(usage)) if cost is not None]
        tokens = usage.input_tokens + usage.output_tokens
        await self._ledger.settle(held, tokens=tokens, usd=max(costs, default=None))


def checked(usage: TurnUsage) -> TurnUsage:
    """A usage with only countable figures; a negative value or a non-number becomes unknown."""
    wrong = {
        name: None
        for name, value in usage.model_dump(exclude={"model", "cost_usd"}).items()
        if value is not None and not 0 <= value < 10**12
    }
    cost = _dollars(usage.cost_usd)
    return usage.model_copy(
        update=wrong | {"cost_usd": None if cost is None else str(cost), "model": line(usage.model, 120)}
    )


def _dollars(text: str | None) -> Decimal | None:
    """A provider's amount of money; None when it is invalid."""
    try:
        amount = Decimal(text) if text is not None and len(text) <= 40 else Decimal("NaN")
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < 10**9 else None
