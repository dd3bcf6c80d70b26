"""The limits of one run, and the ledger that holds them across restarts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from fleet.errors import ConfigError
from fleet.personas.check import MAX_WALL_S
from fleet.personas.duration import parse_duration
from fleet.personas.model import BudgetSection

Unit = Literal["calls", "writes", "reports", "closing"]

RESERVE = 1
"""Reports kept back for the closing report, which must be possible when everything else is spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Whole numbers and seconds, always finite. `acts` is false when no act may be tried at all."""

    calls: int
    writes: int
    reports: int
    wall_s: float
    acts: bool

    @classmethod
    def of(cls, section: BudgetSection | None, *, file: str = "") -> Budget:
        """A persona's limits; without any, a small allowance to look and no act at all.

        ConfigError for a wall that is not a number and s, m or h: a limit that cannot be read is not
        a limit that does not exist.
        """
        if section is None:
            return LOOK_ONLY
        return cls(
            calls=section.calls,
            writes=section.writes,
            reports=section.reports,
            wall_s=parse_wall(section.wall, file=file),
            acts=section.writes > 0,
        )

    def limits(self) -> dict[Unit, int]:
        return {"calls": self.calls, "writes": self.writes, "reports": self.reports, "closing": RESERVE}


LOOK_ONLY = Budget(calls=50, writes=0, reports=8, wall_s=600.0, acts=False)
"""What a persona without a budget gets."""


def parse_wall(text: str, *, file: str = "") -> float:
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


class Spending(Protocol):
    """The two methods of the journal that a ledger needs."""

    async def spend(self, run_id: str, unit: str, amount: int, limit: int) -> int: ...

    async def spent(self, run_id: str) -> dict[str, int]: ...


class Ledger:
    """One run's budget over the journal: what was spent stays spent, whatever happens to the process."""

    def __init__(self, journal: Spending, run: str, budget: Budget) -> None:
        self.budget = budget
        self._journal = journal
        self._run = run

    async def spend(self, unit: Unit, amount: int = 1) -> int:
        """Count before spending; what is left, or BudgetExceeded and nothing counted."""
        return await self._journal.spend(self._run, unit, amount, self.budget.limits()[unit])

    async def left(self) -> Mapping[Unit, int]:
        """What may still be spent, by unit; never below 0, also when the limits were lowered since."""
        spent = await self._journal.spent(self._run)
        return {unit: max(0, limit - spent.get(unit, 0)) for unit, limit in self.budget.limits().items()}
