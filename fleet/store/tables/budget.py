"""The ledger: spending by run and by day, checked and counted in one transaction beforehand.

Each amount counts three times at once: against its run, against its persona's day and against the fleet's
day. All limits hold or nothing is counted. The day is that of the clock at that moment, in UTC; a later
settle counts in the day of the reservation, also after midnight.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Executable,
    Select,
    Table,
    bindparam,
    case,
    delete,
    insert,
    literal,
    null,
    select,
    union_all,
)

from fleet.errors import BudgetExceeded, UsageError
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import BUDGET, DAYS, RESERVES, RUNS, Words, plain
from fleet.store.tables.base import TableGroup
from fleet.store.tables.units import FLEET, INT_MAX, SCOPES, Limits, Scope, key_of, limited, number

NEXT_DAY = ", or wait for the next day (UTC)"


def _words(name: str) -> BindParameter[str]:
    return bindparam(name, type_=Words)


def _whole(name: str) -> BindParameter[int]:
    return bindparam(name, type_=BigInteger)


_OF_RUN, _OF_DAY, _OF_UNIT = _words("of_run"), _words("of_day"), _words("of_unit")
_BY, _FIRST, _MOST, _TOP, _BOTTOM = map(_whole, ("by", "first", "most", "top", "bottom"))


_SPENT = select(
    union_all(
        select(null().label("owner"), BUDGET.c.unit, BUDGET.c.spent).where(BUDGET.c.run_id == _OF_RUN),
        select(DAYS.c.owner, DAYS.c.unit, DAYS.c.spent)
        .join(RUNS, DAYS.c.owner.in_([RUNS.c.persona, FLEET]))
        .where(RUNS.c.run_id == _OF_RUN, DAYS.c.day == _OF_DAY),
    ).subquery()
)
"""Made once: SQLAlchemy takes longer to make such a statement than the database to answer it."""


class Spending(TableGroup):
    async def spend(
        self, run_id: str, unit: str, amount: int, limit: int, *, day: Limits | None = None
    ) -> int:
        """Count `amount` against `limit` and the day's limits; returns what is left within all of them.

        BudgetExceeded, naming the limit, when it does not fit; then nothing is counted. A crash right
        after this returns leaves the amount spent: a budget is never refunded.
        ValueError for anything that is not a whole number from 0 up, UsageError for an unknown run, LostRun
        for one that a peer owns.
        """
        limits: Limits = {**(day or {}), "run": {unit: limit}}
        _check({unit: amount}, limits)

        async def work(c: Connection) -> int:
            await self._fence(c, run_id)
            return await self._count(c, run_id, self._day(), unit, amount, limits)

        return await self._db.write(f"budget.{unit}", work)

    async def reserve(self, run_id: str, amounts: Mapping[str, int], limits: Limits) -> str:
        """Count several amounts at once, all or nothing, until `settle` gives the actual amounts.

        Returns the id for `settle`. Without a settle (a crash) they stay spent. Raises as `spend`.
        """
        _check(amounts, limits)
        reserve_id = secrets.token_hex(8)  # never reused, unlike the number of a deleted row

        async def work(c: Connection) -> None:
            await self._fence(c, run_id)
            day = self._day()
            for unit, count in sorted(amounts.items()):
                await self._count(c, run_id, day, unit, count, limits)
            row = {"reserve_id": reserve_id, "run_id": run_id, "day": day, "at": self._now()}
            await c.execute(insert(RESERVES).values(row | {"held": dict(amounts)}))

        await self._db.write("budget.reserve", work)
        return reserve_id

    async def settle(self, reserve_id: str, actual: Mapping[str, int]) -> None:
        """Refund the unused part of a reservation, once; charge usage beyond it, regardless of the limit.

        A unit missing from `actual` stays as reserved. An id that was settled before, or never issued,
        changes nothing: no refund happens twice.
        """
        _check(actual, {})
        taken = delete(RESERVES).where(RESERVES.c.reserve_id == reserve_id)

        async def work(c: Connection) -> None:
            row = (await c.execute(taken.returning(RESERVES))).one_or_none()
            if row is None:
                return
            held = row.held
            for unit, count in sorted(actual.items()):
                by = max(-INT_MAX, min(count - held.get(unit, 0), INT_MAX))
                await self._add(c, row.run_id, row.day, unit, by, INT_MAX)

        await self._db.write("budget.settle", work)

    async def spent(self, run_id: str) -> dict[str, int]:
        """What the run has spent so far, by unit; units never touched are absent."""
        return (await self.spent_by([run_id]))[run_id]

    async def spent_by(self, runs: Collection[str]) -> dict[str, dict[str, int]]:
        """The same of each of these runs."""
        statement = select(BUDGET.c.run_id, BUDGET.c.unit, BUDGET.c.spent).where(BUDGET.c.run_id.in_(runs))
        found: dict[str, dict[str, int]] = {plain(run): {} for run in runs}
        for run, unit, spent in await self._db.rows(statement):
            found[run][unit] = spent
        return {run: found[plain(run)] for run in runs}

    async def spent_in(self, run_id: str) -> dict[Scope, dict[str, int]]:
        """What the run, its persona today and the fleet today have spent, by unit."""
        found: dict[Scope, dict[str, int]] = {scope: {} for scope in SCOPES}
        for owner, unit, spent in await self._db.rows(_SPENT.params(of_run=run_id, of_day=self._day())):
            found[_scope(owner)][unit] = spent
        return found

    async def spent_today(self, day: str = "") -> dict[str, dict[str, int]]:
        """What was spent on this day (UTC), or on another one (ISO): by persona and unit; "" is the whole
        fleet."""
        found: dict[str, dict[str, int]] = {FLEET: {}}
        statement = select(DAYS.c.owner, DAYS.c.unit, DAYS.c.spent).where(DAYS.c.day == (day or self._day()))
        for owner, unit, spent in await self._db.rows(statement):
            found.setdefault(owner, {})[unit] = spent
        return found

    def _day(self) -> str:
        return self._now()[:10]

    async def _count(
        self, c: Connection, run_id: str, day: str, unit: str, count: int, limits: Limits
    ) -> int:
        """Count first, then check: what does not fit is rolled back with the transaction."""
        by = min(count, INT_MAX)
        spent = await self._add(c, run_id, day, unit, by, INT_MAX - by)
        if (
            "run" not in spent
            and await c.scalar(select(RUNS.c.run_id).where(RUNS.c.run_id == run_id)) is None
        ):
            raise UsageError("no such run", remedy="name a run that the journal knows")
        left = INT_MAX
        for scope in SCOPES:
            limit = min(limits.get(scope, {}).get(unit, 0 if scope == "run" else INT_MAX), INT_MAX)
            owner, now = spent.get(scope, ("", INT_MAX))
            if max(count, now) > limit or scope not in spent:
                what = limited(scope, unit, limit, owner)
                more = number(unit, count)
                wait = "" if scope == "run" else NEXT_DAY
                raise BudgetExceeded(
                    f"{what} does not cover {more} more", remedy=f"raise {key_of(scope, unit)}{wait}"
                )
            left = min(left, limit - now)
        return left

    async def _add(
        self, c: Connection, run_id: str, day: str, unit: str, by: int, most: int
    ) -> dict[Scope, tuple[str, int]]:
        """Change the counts of all scopes, within a column's range; returns owners and spending.

        A count above `most` is unchanged and not returned. Always in the same order, so that two
        transactions never wait for each other.
        """
        values = {
            "of_run": run_id,
            "of_day": day,
            "of_unit": unit,
            "by": by,
            "first": max(by, 0),
            "most": most,
            "top": INT_MAX - max(by, 0),
            "bottom": max(-by, 0),
        }
        spent: dict[Scope, tuple[str, int]] = {}
        for statement in self._adding:
            for owner, now in await c.execute(statement, values):
                spent[_scope(owner)] = owner or "", now
        return spent

    @cached_property
    def _adding(self) -> tuple[Executable, Executable]:
        """The statement for the run, and the one for both days; the run's owner is None."""
        run, fleet = RUNS.c.run_id, literal(FLEET, Words)
        mine = run == _OF_RUN
        runs = select(run, _OF_UNIT, _FIRST).where(mine)
        days = union_all(
            select(_OF_DAY, RUNS.c.persona, _OF_UNIT, _FIRST).where(mine),
            select(_OF_DAY, fleet, _OF_UNIT, _FIRST).select_from(RUNS).where(mine),
        )
        return self._upsert(BUDGET, runs, null()), self._upsert(DAYS, days, DAYS.c.owner)

    def _upsert(
        self,
        table: Table,
        rows: Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]],
        owner: ColumnElement[Any],
    ) -> Executable:
        spent = table.c.spent
        after = case((spent > _TOP, INT_MAX), (spent < _BOTTOM, 0), else_=spent + _BY)
        statement: Executable = (
            self._db.insert(table)
            .from_select([*table.columns.keys()], rows)
            .on_conflict_do_update(
                index_elements=list(table.primary_key.columns), set_={"spent": after}, where=spent <= _MOST
            )
            .returning(owner, spent)
        )
        return statement


def _scope(owner: str | None) -> Scope:
    """Owner of a row's count; None for a run's."""
    return "run" if owner is None else "persona" if owner != FLEET else "fleet"


def _check(amounts: Mapping[str, int], limits: Limits) -> None:
    for count in (*amounts.values(), *(n for units in limits.values() for n in units.values())):
        if type(count) is not int or count < 0:
            raise ValueError(f"budgets count in whole numbers from 0 up, not {count!r}")
