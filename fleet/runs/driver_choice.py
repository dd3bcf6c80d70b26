"""Whose hand drives a run: a driver with its name, its prices and how long it may go without news."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from fleet.drivers.desk import Driver
from fleet.drivers.playbook import playbook
from fleet.events.model import TurnUsage
from fleet.runs.desk.stop_conditions import MAX_STALE

Price = Callable[[TurnUsage], Decimal | None]
"""What a usage costs in dollars; None when nobody knows."""


def unpriced(usage: TurnUsage) -> Decimal | None:
    """Of a model without prices; and of no model, which never asks."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverChoice:
    """`name` is playbook, model, replay or mcp; `model` is provider:name, "" without one.

    `explores`: it may go on when the plan is complete. `patience` is the number of turns without news that
    end a run: six for a driver whose turn is a step of thought; more for one whose every call is a turn.
    """

    name: str
    drive: Driver
    model: str = ""
    price: Price = unpriced
    explores: bool = False
    patience: int = MAX_STALE


PLAYBOOK = DriverChoice(name="playbook", drive=playbook)
