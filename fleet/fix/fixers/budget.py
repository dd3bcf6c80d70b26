"""What a fixer may spend of its run."""

from __future__ import annotations

from typing import Protocol

from fleet.events.model import TurnUsage


class FixBudget(Protocol):
    """The run's ledger as a fixer sees it: checked before a model is asked, charged after."""

    def seconds(self) -> float:
        """Seconds that the run has left; RunOver when there are none, or STOP or the dial ends it."""

    async def reserve(self, tokens: int) -> None:
        """Reserve the most that one answer may cost; RunOver when that is not covered."""

    async def charge(self, usage: TurnUsage | None) -> None:
        """Charge what it cost; None or unknown figures leave the reservation spent."""
