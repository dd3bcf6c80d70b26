"""The cost of a model: reserved before a call, settled after it."""

from __future__ import annotations

from decimal import Decimal

from fleet.events.model import TurnUsage
from fleet.gate.budget import Ledger, Reservation
from fleet.runs.desk.turn import checked, dollars
from fleet.runs.driver_choice import Price


class ModelBudget:
    """One run's reservations. An unsettled one stays spent."""

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
        known = usage.input_tokens is not None and usage.output_tokens is not None
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if known else None
        await self._ledger.settle(held, tokens=tokens, usd=_cost(usage, price) if known else None)


def _cost(usage: TurnUsage, price: Price) -> Decimal | None:
    """The higher of the provider's figure and the price computed from tokens."""
    known = [cost for cost in (dollars(usage.cost_usd), price(usage)) if cost is not None]
    return max(known, default=None)
