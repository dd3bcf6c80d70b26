"""What a proposal spends of its run: jails, each a call; a model's tokens and money; seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fleet.clock import Clock
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded
from fleet.findings.repro import ReproCall
from fleet.fix.model import CommandEnd, FixTask
from fleet.fix.permission.guard import ActGuard, FenceClosed
from fleet.fix.permission.preconditions import ProposeRefusal
from fleet.fix.ports import TreeCommand, TreeJailPort
from fleet.gate.budget import Ledger
from fleet.runs.desk.model_budget import ModelReservation
from fleet.runs.driver_choice import Price, unpriced

Fences = Callable[[], ProposeRefusal | None]
T = TypeVar("T")


@dataclass(slots=True)
class PaidJails:
    """A TreeJailPort around another one; STOP or a dial below `propose` ends a jail, RunOver the run."""

    inner: TreeJailPort
    ledger: Ledger
    fences: Fences

    async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
        return await self._paid(lambda: self.inner.run(tree, command))

    async def ask(
        self, tree: Path, task: FixTask, calls: Sequence[ReproCall], *, elsewhere: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        return await self._paid(lambda: self.inner.ask(tree, task, calls, elsewhere=elsewhere))

    async def _paid(self, act: Callable[[], Awaitable[T]]) -> T:
        async def refused() -> ProposeRefusal | None:
            return self.fences()

        if (found := self.fences()) is not None:
            raise FenceClosed(found)
        try:
            await self.ledger.spend("calls")
        except BudgetExceeded as error:
            raise RunOver("budget_exceeded", str(error)) from None
        return await ActGuard(refused).watch(act)


@dataclass(slots=True)
class RunFixBudget:
    """The run's ledger for a fixer: reserved before a model is asked, charged after. `ends` is on the clock's
    monotonic scale."""

    ledger: Ledger
    clock: Clock
    ends: float
    fences: Fences
    price: Price = unpriced

    def seconds(self) -> float:
        """Seconds that the run has left; RunOver when there are none, under STOP and below `propose`."""
        if (found := self.fences()) is not None:
            raise RunOver("stopped" if found.rule == "stop" else "refused", found.reason)
        left = self.ends - self.clock.monotonic()
        if left <= 0:
            raise RunOver("deadline_exceeded", "the run's time is over")
        return left

    async def reserve(self, tokens: int) -> ModelReservation:
        """Count the most that one answer may cost; RunOver when that is not covered."""
        try:
            return await ModelReservation.of(self.ledger, self.price, tokens)
        except BudgetExceeded as error:
            raise RunOver("budget_exceeded", str(error)) from None
