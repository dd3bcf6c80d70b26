"""A run's driver with its name, its prices and its patience."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from fleet.drivers.desk import Driver
from fleet.drivers.playbook import playbook
from fleet.events.model import TurnUsage
from fleet.runs.desk.stop_conditions import MAX_STALE

Price = Callable[[TurnUsage], Decimal | None]
"""Cost of a usage in dollars; None when unknown."""


def unpriced(usage: TurnUsage) -> Decimal | None:
    """For a model without prices, and for no model."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverChoice:
    """`name` is playbook, model, replay or mcp; `model` is provider:name, "" without one.

    `explores`: it may continue when the plan is complete. `patience` is the number of turns without news that
    end a run: six for a driver that thinks in turns; more for one whose every call is a turn.
    """

    name: str
    drive: Driver
    model: str = ""
    price: Price = unpriced
    explores: bool = False
    patience: int = MAX_STALE


PLAYBOOK = DriverChoice(name="playbook", drive=playbook)
