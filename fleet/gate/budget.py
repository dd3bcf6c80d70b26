"""The limits of one run and of its day, and the ledger that holds them across restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, get_args

from fleet.config import DayLimits
from fleet.errors import BudgetExceeded, ConfigError
from fleet.personas.duration import MAX_WALL_S, parse_duration
from fleet.personas.model import BudgetSection
from fleet.store.tables.units import FLEET, INT_MAX, SCOPES, USD, Limits, Scope, key_of, limited, micros

Unit = Literal["calls", "writes", "reports", "closing", "tokens", "usd_micro", "requests"]
"""`usd_micro` are whole millionths of a dollar; `closing` is the report reserved for the end of a run;
`requests` are explorers' requests to the platform, which only a day limits."""
UNITS: tuple[Unit, ...] = get_args(Unit)

NO_EFFECT = frozenset({400, 401, 403, 404, 405, 415, 422})
"""Statuses of a write that the platform refused: it changed nothing."""
QUARTERS = 4
"""Of a write to a page: a refused one costs one of them, and the others pay for later ones of the run."""
RESERVE = 1
"""Reports reserved for the closing report, which must be possible when the rest is spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Whole numbers and seconds, always finite. `acts` is false when no act may be tried.

    `usd_micro` is None when a run has no money limit: then tokens limit it. `day` is what all
    runs of its persona may spend on one day; a unit missing from it has no daily limit.
    """

    calls: int
    writes: int
    reports: int
    wall_s: float
    acts: bool
    tokens: int = 0
    usd_micro: int | None = None
    day: Mapping[Unit, int] = field(default_factory=dict)

    @classmethod
    def of(cls, section: BudgetSection | None, *, file: Path | str = "") -> Budget:
        """A persona's limits; without a budget, a small allowance for reads and no acts.

        ConfigError for a wall that is not a number and s, m or h: an unreadable limit must not become no
        limit.
        """
        if section is None:
            return LOOK_ONLY
        return cls(
            calls=section.calls,
            writes=section.writes,
            reports=section.reports,
            wall_s=parse_wall(section.wall, file=file),
            acts=section.writes > 0,
            tokens=section.tokens,
            usd_micro=None if section.usd is None else micros(section.usd),
            day=day_limits(section.day),
        )

    def limits(self) -> dict[Unit, int]:
        """Limits of the run alone."""
        found: dict[Unit, int] = {
            "calls": self.calls,
            "writes": self.writes,
            "reports": self.reports,
            "closing": RESERVE,
            "tokens": self.tokens,
        }
        return found if self.usd_micro is None else found | {"usd_micro": self.usd_micro}


LOOK_ONLY = Budget(calls=50, writes=0, reports=8, wall_s=600.0, acts=False)
"""Allowance of a persona without a budget."""


def day_limits(section: DayLimits | None) -> dict[Unit, int]:
    """The limits of a day that are set, in the ledger's units."""
    if section is None:
        return {}
    counts: dict[Unit, int | None] = {
        "calls": section.calls,
        "writes": section.writes,
        "reports": section.reports,
        "tokens": section.tokens,
        "usd_micro": None if section.usd is None else micros(section.usd),
    }
    return {unit: limit for unit, limit in counts.items() if limit is not None}


def parse_wall(text: str, *, file: Path | str = "") -> float:
    """`90s`, `10m`, `2h` to seconds, at most a day; ConfigError otherwise."""
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_WALL_S:
        where = f"{file}: " if file else ""
        raise ConfigError(
            f"{where}budget.wall: {text!r} is not a duration", remedy="write 90s, 10m or 2h, at most 24h"
        )
    return seconds


class SpendingPort(Protocol):
    """The methods of the journal that a ledger needs; its tables would bring SQLAlchemy to every command."""

    async def spend(
        self, run_id: str, unit: str, amount: int, limit: int, *, day: Limits | None = None
    ) -> int: ...

    async def reserve(self, run_id: str, amounts: Mapping[str, int], limits: Limits) -> str: ...

    async def settle(self, reserve_id: str, actual: Mapping[str, int]) -> None: ...

    async def spent_in(self, run_id: str) -> Mapping[Scope, Mapping[str, int]]: ...


class Today(Protocol):
    """The method of the journal that returns what a day has spent."""

    async def spent_today(self) -> Mapping[str, Mapping[str, int]]: ...


class Room(NamedTuple):
    """What may still be spent of a unit, and the limit that decides it: `most` of it in this scope."""

    left: int
    scope: Scope = "run"
    unit: str = ""
    most: int = 0

    @property
    def limit(self) -> str:
        """The limit in words."""
        return limited(self.scope, self.unit, self.most)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Model usage that is counted but not yet known. `usd` None: not reserved."""

    id: str
    tokens: int
    usd: Decimal | None


class Ledger:
    """One run's budget in the journal: spending survives the process.

    Everything counts against the run, its persona's day and the fleet's day at once; the smallest of
    what is left decides. `fleet` are the limits of the fleet's day as they are now (`day_limits`).
    The day is UTC's at the moment of counting.
    """

    def __init__(
        self,
        journal: SpendingPort,
        run: str,
        budget: Budget,
        fleet: Callable[[], Mapping[Unit, int]] = dict,
    ) -> None:
        self.budget = budget
        self._kept: dict[Unit, int] = {}
        self._quarters = 0
        """Of writes that were charged and refused; a crash leaves them spent."""
        self._journal = journal
        self._run = run
        self._fleet = fleet

    async def spend(self, unit: Unit, amount: int = 1) -> int:
        """Count before spending; return what is left. On BudgetExceeded nothing is counted."""
        limit = INT_MAX if unit == "requests" else self._of_run().get(unit, 0)
        return await self._journal.spend(self._run, unit, amount, limit, day=self._day())

    def write_refused(self) -> None:
        """Note that a write to a page, which was charged, had no effect."""
        self._quarters += QUARTERS - 1

    def unpaid(self, writes: int) -> int:
        """How many of these writes to pages are charged, when refused ones have paid for the others."""
        paid = min(writes, self._quarters // QUARTERS)
        self._quarters -= paid * QUARTERS
        return writes - paid

    async def count(self, unit: Unit, amount: int) -> None:
        """Count what was spent already, even when it passes a limit; everything after it is refused then."""
        await self._journal.spend(self._run, unit, amount, INT_MAX)

    async def reserve(self, *, tokens: int, usd: Decimal | None) -> Reservation:
        """Durably count the most that a model call may use, before it is made; all or nothing.

        `tokens` in and out together, `usd` in dollars (rounded up to the micro-dollar), None when the
        price is unknown. A crash before `settle` leaves it spent. The day is that of this moment: a call
        that runs past midnight is settled in the day in which it began.

        BudgetExceeded when it does not fit, or when the price is unknown and any limit is in money.
        ValueError and TypeError for a value that is not a number of tokens or an amount of money.
        """
        amounts: dict[str, int] = {"tokens": tokens}
        if usd is not None:
            amounts[USD] = micros(usd)
        limits = self._limits()
        for scope in SCOPES if usd is None else ():
            if USD in limits[scope]:
                what = limited(scope, USD, limits[scope][USD])
                raise BudgetExceeded(
                    f"the price of the model is unknown, and {what} is set",
                    remedy=f"set the model's price, or remove {key_of(scope, USD)}",
                )
        limits = {**limits, "run": {USD: INT_MAX, **limits["run"]}}  # counted even without a limit
        return Reservation(await self._journal.reserve(self._run, amounts, limits), tokens, usd)

    async def settle(self, reservation: Reservation, *, tokens: int | None, usd: Decimal | None) -> None:
        """Durably record what a call used: return the rest, or charge the excess.

        None means unknown: what was reserved stays spent. More than was reserved is charged even when it
        passes a limit; everything after it is refused then. Only the first settle of a reservation counts.
        ValueError and TypeError for invalid usage (negative, NaN, a float): nothing is returned.
        """
        actual = {} if tokens is None else {"tokens": tokens}
        if usd is not None:
            actual[USD] = micros(usd)
        await self._journal.settle(reservation.id, actual)

    async def left(self) -> Mapping[Unit, int]:
        """What may still be spent, by unit; never below 0, even if the limits were lowered since."""
        return {unit: room.left for unit, room in (await self.room()).items()}

    async def room(self) -> Mapping[Unit, Room]:
        """What may still be spent, by unit, and the nearest limit."""
        spent = await self._journal.spent_in(self._run)
        rooms: dict[Unit, Room] = {}
        for unit in UNITS:
            paid = self._quarters // QUARTERS if unit == "writes" else 0
            found = [
                Room(max(0, limits[unit] - spent[scope].get(unit, 0)) + paid, scope, unit, limits[unit])
                for scope, limits in self._limits().items()
                if unit in limits
            ]
            if found:
                rooms[unit] = min(found, key=lambda room: room.left)
        return rooms

    async def own_left(self, unit: Unit) -> int:
        """What the run's own limit leaves, regardless of the day; never below 0."""
        spent = await self._journal.spent_in(self._run)
        return max(0, self.budget.limits().get(unit, 0) - spent["run"].get(unit, 0))

    @contextmanager
    def keeping(self, kept: Mapping[Unit, int]) -> Iterator[None]:
        """Hold back so much of the run's own limits while the block runs: it is for another purpose."""
        before, self._kept = self._kept, dict(kept)
        try:
            yield
        finally:
            self._kept = before

    def _of_run(self) -> dict[Unit, int]:
        limits = self.budget.limits()
        return {unit: max(0, limit - self._kept.get(unit, 0)) for unit, limit in limits.items()}

    def _limits(self) -> Limits:
        return {"run": _counts(self._of_run()), **self._day()}

    def _day(self) -> Limits:
        return {"persona": _counts(self.budget.day), "fleet": _counts(self._fleet())}


def _counts(limits: Mapping[Unit, int]) -> dict[str, int]:
    return {str(unit): limit for unit, limit in limits.items()}


async def left_today(journal: Today, days: Mapping[str, Mapping[Unit, int]]) -> dict[str, dict[Unit, int]]:
    """What is left of today's limits, by owner and unit. `days`: a persona's limits, or those of FLEET."""
    spent = await journal.spent_today()
    return {
        owner: {unit: max(0, limit - spent.get(owner, {}).get(unit, 0)) for unit, limit in limits.items()}
        for owner, limits in days.items()
    }


async def spent_for_today(
    journal: Today, persona: str, budget: Budget, fleet: Mapping[Unit, int], *, units: Iterable[Unit]
) -> str:
    """Why a run of this persona should not start today: the day's budget of a needed unit is spent.

    "" when it may. Not a fence: what is spent between this check and the run is refused there.
    """
    days: dict[Scope, tuple[str, Mapping[Unit, int]]] = {
        "persona": (persona, budget.day),
        "fleet": (FLEET, fleet),
    }
    left = await left_today(journal, dict(days.values()))
    for unit in units:
        for scope, (owner, limits) in days.items():
            if left[owner].get(unit) == 0:
                return f"{limited(scope, unit, limits[unit], owner)} is spent"
    return ""
