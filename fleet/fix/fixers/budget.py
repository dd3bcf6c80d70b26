"""What a fixer may spend: the run's tokens and money, and the seconds that are left of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fleet.clock import Clock
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded
from fleet.events.model import TurnUsage
from fleet.fix.permission.preconditions import ProposeRefusal
from fleet.gate.budget import Ledger
from fleet.runs.desk.model_budget import ModelBudget
from fleet.runs.driver_choice import Price, unpriced


@dataclass(slots=True)
class RunFixBudget:
    """The run's ledger for a fixer: reserved before a model is asked, charged after. `ends` is on the clock's
    monotonic scale."""

    ledger: Ledger
    clock: Clock
    ends: float
    fences: Callable[[], ProposeRefusal | None]
    price: Price = unpriced
    _held: ModelBudget = field(init=False)

    def __post_init__(self) -> None:
        self._held = ModelBudget(self.ledger)

    def seconds(self) -> float:
        """Seconds that the run has left; RunOver when there are none, under STOP and below `propose`."""
        if (found := self.fences()) is not None:
            raise RunOver("stopped" if found.rule == "stop" else "refused", found.reason)
        left = self.ends - self.clock.monotonic()
        if left <= 0:
            raise RunOver("deadline_exceeded", "the run's time is over")
        return left

    async def reserve(self, tokens: int) -> None:
        """Count the most that one answer may cost; RunOver when that is not covered."""
        try:
            await self._held.reserve(tokens, self.price)
        except BudgetExceeded as error:
            raise RunOver("budget_exceeded", str(error)) from None

    async def charge(self, usage: TurnUsage | None) -> None:
        """Count what it cost; what is unknown stays reserved."""
        await self._held.settle(usage, self.price)
