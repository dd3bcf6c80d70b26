"""What a run has spent: checked and counted in one statement, on the disk before anything is spent."""

from __future__ import annotations

from sqlalchemy import select

from fleet.errors import BudgetExceeded
from fleet.store.part import INT_MAX, Part
from fleet.store.schema import BUDGET


class Spending(Part):
    async def spend(self, run_id: str, unit: str, amount: int, limit: int) -> int:
        """Count `amount` against `limit` and return what is left; beyond it BudgetExceeded, nothing counted.

        A crash right after this returns leaves the amount spent: a budget is never handed back.
        ValueError for anything that is not a whole number from 0 up, UsageError for an unknown run.
        """
        for number in (amount, limit):
            if type(number) is not int or number < 0:
                raise ValueError(f"budgets count in whole numbers from 0 up, not {number!r}")
        limit = min(limit, INT_MAX)
        spent: int | None = None
        if amount <= limit:
            counted = self._db.insert(BUDGET).values(run_id=run_id, unit=unit, spent=amount)
            counted = counted.on_conflict_do_update(
                index_elements=[BUDGET.c.run_id, BUDGET.c.unit],
                set_={"spent": BUDGET.c.spent + amount},
                where=BUDGET.c.spent <= limit - amount,
            )
            statement = counted.returning(BUDGET.c.spent)
            spent = await self._db.write(f"budget.{unit}", lambda c: c.scalar(statement))
        if spent is None:
            why = f"the budget of {limit} {unit} does not cover {amount} more"
            raise BudgetExceeded(why, remedy="raise it in the persona file")
        return limit - spent

    async def spent(self, run_id: str) -> dict[str, int]:
        """What the run has spent so far, by unit; units never touched are absent."""
        statement = select(BUDGET.c.unit, BUDGET.c.spent).where(BUDGET.c.run_id == run_id)
        return {row[0]: row[1] for row in await self._db.rows(statement)}
