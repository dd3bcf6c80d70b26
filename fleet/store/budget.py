"""The ledger: what was spent, by run and by day, checked and counted in one transaction before it is spent.

Each amount counts three times at once: against its run, against its persona's day and against the fleet's
day. All limits hold or nothing is counted. The day is the one of the clock at that moment, in UTC; what is
settled later counts in the day in which it was reserved, also after midnight.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import ColumnElement, Table, delete, insert, literal, select, union_all, update

from fleet.errors import BudgetExceeded, UsageError
from fleet.store.database import Connection
from fleet.store.part import Part, pack, unpack
from fleet.store.schema import BUDGET, DAYS, RESERVES, RUNS
from fleet.store.units import FLEET, INT_MAX, SCOPES, Limits, Scope, key_of, limited, number

NEXT_DAY = ", or wait for the next day (UTC)"


class _Account(NamedTuple):
    """One row that counts: which table, and the key of the row but for its unit."""

    scope: Scope
    table: Table
    key: dict[str, str]


class Spending(Part):
    async def spend(
        self, run_id: str, unit: str, amount: int, limit: int, *, day: Limits | None = None
    ) -> int:
        """Count `amount` against `limit` and the day's limits; what is left within all of them.

        BudgetExceeded when it does not fit, naming the limit, and then nothing is counted. A crash right
        after this returns leaves the amount spent: a budget is never handed back.
        ValueError for anything that is not a whole number from 0 up, UsageError for an unknown run.
        """
        limits: Limits = {**(day or {}), "run": {unit: limit}}
        _check({unit: amount}, limits)

        async def work(c: Connection) -> int:
            accounts = await _accounts(c, run_id, self._day())
            return await self._count(c, accounts, unit, amount, limits)

        return await self._db.write(f"budget.{unit}", work)

    async def reserve(self, run_id: str, amounts: Mapping[str, int], limits: Limits) -> str:
        """Count several amounts at once, all or nothing, until `settle` says what it really was.

        The id that settles them. Without a settle (a crash) they stay spent. Raises as `spend`.
        """
        _check(amounts, limits)
        reserve_id = secrets.token_hex(8)  # never given out again, unlike a number whose row is gone

        async def work(c: Connection) -> None:
            day = self._day()
            accounts = await _accounts(c, run_id, day)
            for unit, count in sorted(amounts.items()):
                await self._count(c, accounts, unit, count, limits)
            row = {"reserve_id": reserve_id, "run_id": run_id, "day": day, "at": self._now()}
            await c.execute(insert(RESERVES).values(row | {"held": pack(dict(amounts))}))

        await self._db.write("budget.reserve", work)
        return reserve_id

    async def settle(self, reserve_id: str, actual: Mapping[str, int]) -> None:
        """Hand back what was reserved and not used, once; charge what was used beyond it, whatever the limit.

        A unit that `actual` does not name stays as it was reserved. An id that was settled before (or
        never given out) changes nothing: nothing is handed back twice.
        """
        _check(actual, {})
        taken = delete(RESERVES).where(RESERVES.c.reserve_id == reserve_id)

        async def work(c: Connection) -> None:
            row = (await c.execute(taken.returning(RESERVES))).one_or_none()
            if row is None:
                return
            held = unpack(row.held)
            accounts = await _accounts(c, row.run_id, row.day)
            for unit, count in sorted(actual.items()):
                for account in accounts:
                    await self._shift(c, account, unit, count - held.get(unit, 0))

        await self._db.write("budget.settle", work)

    async def spent(self, run_id: str) -> dict[str, int]:
        """What the run has spent so far, by unit; units never touched are absent."""
        statement = select(BUDGET.c.unit, BUDGET.c.spent).where(BUDGET.c.run_id == run_id)
        return {row[0]: row[1] for row in await self._db.rows(statement)}

    async def spent_in(self, run_id: str) -> dict[Scope, dict[str, int]]:
        """What the run, its persona today and the fleet today have spent, by unit."""
        found: dict[Scope, dict[str, int]] = {scope: {} for scope in SCOPES}
        persona = select(RUNS.c.persona).where(RUNS.c.run_id == run_id).scalar_subquery()
        today = DAYS.c.day == self._day()
        statement = union_all(
            select(literal("run"), BUDGET.c.unit, BUDGET.c.spent).where(BUDGET.c.run_id == run_id),
            select(literal("persona"), DAYS.c.unit, DAYS.c.spent).where(today, DAYS.c.owner == persona),
            select(literal("fleet"), DAYS.c.unit, DAYS.c.spent).where(today, DAYS.c.owner == FLEET),
        )
        for scope, unit, spent in await self._db.rows(select(statement.subquery())):
            found[scope][unit] = spent
        return found

    async def spent_today(self) -> dict[str, dict[str, int]]:
        """What was spent on this day (UTC): by persona and unit; "" is the whole fleet."""
        found: dict[str, dict[str, int]] = {FLEET: {}}
        statement = select(DAYS.c.owner, DAYS.c.unit, DAYS.c.spent).where(DAYS.c.day == self._day())
        for owner, unit, spent in await self._db.rows(statement):
            found.setdefault(owner, {})[unit] = spent
        return found

    def _day(self) -> str:
        return self._now()[:10]

    async def _count(
        self, c: Connection, accounts: list[_Account], unit: str, count: int, limits: Limits
    ) -> int:
        left = INT_MAX
        for account in accounts:
            unlisted = 0 if account.scope == "run" else INT_MAX
            limit = min(limits.get(account.scope, {}).get(unit, unlisted), INT_MAX)
            spent = await self._add(c, account, unit, count, limit)
            if spent is None:
                raise _exceeded(account, unit, count, limit)
            left = min(left, limit - spent)
        return left

    async def _add(self, c: Connection, account: _Account, unit: str, count: int, limit: int) -> int | None:
        """What is spent now; None when it does not fit."""
        if count > limit:
            return None
        table = account.table
        row = self._db.insert(table).values(**account.key, unit=unit, spent=count)
        counted = row.on_conflict_do_update(
            index_elements=list(table.primary_key.columns),
            set_={"spent": table.c.spent + count},
            where=table.c.spent <= limit - count,
        )
        spent: int | None = await c.scalar(counted.returning(table.c.spent))
        return spent

    async def _shift(self, c: Connection, account: _Account, unit: str, by: int) -> None:
        """Correct one count by what a settle found; within what a column holds."""
        where = _where(account, unit)
        before = await c.scalar(select(account.table.c.spent).where(*where))
        after = max(0, min((before or 0) + by, INT_MAX))
        if before is None:
            await c.execute(insert(account.table).values(**account.key, unit=unit, spent=after))
        else:
            await c.execute(update(account.table).where(*where).values(spent=after))


async def _accounts(c: Connection, run_id: str, day: str) -> list[_Account]:
    """Always in the same order, so that two transactions never wait for each other."""
    persona = await c.scalar(select(RUNS.c.persona).where(RUNS.c.run_id == run_id))
    if persona is None:
        raise UsageError("no such run", remedy="name a run that the journal knows")
    return [
        _Account("run", BUDGET, {"run_id": run_id}),
        _Account("persona", DAYS, {"day": day, "owner": persona}),
        _Account("fleet", DAYS, {"day": day, "owner": FLEET}),
    ]


def _where(account: _Account, unit: str) -> list[ColumnElement[bool]]:
    columns = account.table.c
    return [columns[name] == value for name, value in account.key.items()] + [columns.unit == unit]


def _exceeded(account: _Account, unit: str, count: int, limit: int) -> BudgetExceeded:
    what = limited(account.scope, unit, limit, account.key.get("owner", ""))
    more = number(unit, count)
    wait = "" if account.scope == "run" else NEXT_DAY
    return BudgetExceeded(
        f"{what} does not cover {more} more", remedy=f"raise {key_of(account.scope, unit)}{wait}"
    )


def _check(amounts: Mapping[str, int], limits: Limits) -> None:
    for count in (*amounts.values(), *(n for units in limits.values() for n in units.values())):
        if type(count) is not int or count < 0:
            raise ValueError(f"budgets count in whole numbers from 0 up, not {count!r}")
