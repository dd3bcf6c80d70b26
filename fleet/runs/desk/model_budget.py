"""The cost of a model: reserved before a call, settled after it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from fleet.events.model import TurnUsage
from fleet.gate.budget import Ledger, Reservation
from fleet.runs.driver_choice import Price
from fleet.text import line


@dataclass(frozen=True, slots=True)
class ModelReservation:
    """What one call of a model may cost, set aside in a run's ledger; what is never settled stays spent."""

    ledger: Ledger
    price: Price
    held: Reservation

    @classmethod
    async def of(cls, ledger: Ledger, price: Price, tokens: int) -> ModelReservation:
        """Reserve the most that a call may cost, for any mix of tokens; raises BudgetExceeded."""
        ways = (
            TurnUsage(input_tokens=tokens, output_tokens=0, model_calls=1),
            TurnUsage(input_tokens=0, output_tokens=tokens, model_calls=1),
        )
        costs = [price(way) for way in ways]
        usd = None if None in costs else max(cost for cost in costs if cost is not None)
        return cls(ledger, price, await ledger.reserve(tokens=tokens, usd=usd))

    async def settle(self, usage: TurnUsage | None) -> None:
        """Charge the actual cost of the call; unknown figures leave the reservation spent."""
        if usage is None:
            return
        usage = checked(usage)
        if usage.input_tokens is None or usage.output_tokens is None:
            await self.ledger.settle(self.held, tokens=None, usd=None)
            return
        # the higher of the provider's figure and the one computed from its prices
        costs = [cost for cost in (_dollars(usage.cost_usd), self.price(usage)) if cost is not None]
        tokens = usage.input_tokens + usage.output_tokens
        await self.ledger.settle(self.held, tokens=tokens, usd=max(costs, default=None))


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
