"""Jails that are paid for: each is a call of the run; STOP or a dial below `propose` ends one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded
from fleet.findings.repro import ReproCall
from fleet.fix.model import CommandEnd, FixTask
from fleet.fix.permission.guard import ActGuard, FenceClosed
from fleet.fix.permission.preconditions import ProposeRefusal
from fleet.fix.ports import TreeCommand, TreeJailPort
from fleet.gate.budget import Ledger


@dataclass(slots=True)
class PaidJails:
    """A TreeJailPort around another one; RunOver ends the run. `ran` counts the jails."""

    inner: TreeJailPort
    ledger: Ledger
    fences: Callable[[], ProposeRefusal | None]
    ran: int = 0

    async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
        await self._pay()
        return await self._guard.watch(lambda: self.inner.run(tree, command))

    async def ask(
        self, tree: Path, task: FixTask, calls: Sequence[ReproCall], *, elsewhere: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        await self._pay()
        return await self._guard.watch(lambda: self.inner.ask(tree, task, calls, elsewhere=elsewhere))

    @property
    def _guard(self) -> ActGuard:
        async def refused() -> ProposeRefusal | None:
            return self.fences()

        return ActGuard(refused)

    async def _pay(self) -> None:
        if (found := self.fences()) is not None:
            raise FenceClosed(found)
        try:
            await self.ledger.spend("calls")
        except BudgetExceeded as error:
            raise RunOver("budget_exceeded", str(error)) from None
        self.ran += 1
