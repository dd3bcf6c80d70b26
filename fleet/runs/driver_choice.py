"""Chooses a run's driver: the playbook, a model, or one that was passed in; with prices and patience."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from fleet.config import FleetConfig
from fleet.drivers.desk import Driver
from fleet.drivers.model.factory import model_driver
from fleet.drivers.model.prices import cost
from fleet.drivers.playbook import playbook
from fleet.errors import ConfigError
from fleet.events.model import TurnUsage
from fleet.personas.load import LoadedPersona

DRIVERS = ("auto", "playbook", "retest")
"""Drivers available without a model; `auto` then means the playbook."""
TRIAGE = "triage"
"""The driver of a run that reads the log instead of the platform."""
FIX = "fix"
"""The driver of a run that proposes a fix of an item."""
MAX_STALE = 6
"""Turns without progress that end a run, unless its driver has more patience."""
Price = Callable[[TurnUsage], Decimal | None]
"""Cost of a usage in dollars; None when unknown."""


def unpriced(_usage: TurnUsage) -> Decimal | None:
    """The price for a model without prices, or without a model."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverChoice:
    """`name` is playbook, model, retest, replay or mcp; `model` is provider:name, "" without one.

    `explores`: it may continue after the plan is complete. `patience` is the number of turns without progress
    that end a run: six for a driver that thinks in turns, more for one whose every call is a turn.
    """

    name: str
    drive: Driver
    model: str = ""
    price: Price = unpriced
    explores: bool = False
    patience: int = MAX_STALE

    @property
    def is_model(self) -> bool:
        """Whether the playbook asks what this driver leaves open; turns, calls and time are kept for that."""
        return self.name == "model"


PLAYBOOK = DriverChoice(name="playbook", drive=playbook)
RETEST = DriverChoice(name="retest", drive=playbook)
"""The work of a run with this driver is to run open items again (proof/retest.py); it has no plan."""
EXPLORER_PATIENCE = 10_000
"""Turns: an explorer ends by itself, when it has nothing new to ask or no room."""

MakeModel = Callable[[LoadedPersona], DriverChoice]
"""Makes a model's driver for a persona."""


def drivers(model: MakeModel | None) -> tuple[str, ...]:
    """Drivers available to a persona."""
    return DRIVERS if model is None else (*DRIVERS, "model")


def choose_driver(
    model: MakeModel | None, persona: LoadedPersona, given: DriverChoice | None = None
) -> DriverChoice:
    """The driver for a run of this persona; ConfigError when it is not available.

    `auto` is the model when one is configured and the persona has tokens for it, else the playbook.
    """
    asked, budget = persona.persona.driver, persona.persona.budget
    if given is not None:
        return given
    if asked == RETEST.name:
        return RETEST
    if model is not None and (
        asked == "model" or (asked == "auto" and budget is not None and budget.tokens > 0)
    ):
        return model(persona)
    if asked not in DRIVERS:
        raise ConfigError(
            f"{persona.path}: driver: {asked!r} cannot drive a run here",
            remedy=f"one of {', '.join(drivers(model))}",
        )
    return PLAYBOOK


def configured_model(config: FleetConfig, state: Path) -> Callable[[LoadedPersona], DriverChoice] | None:
    """Factory of a model's choice for a run; None without a model. ConfigError for what would fail later."""
    section, make = config.model, model_driver(config, state)
    if section is None or make is None:
        return None

    def price(usage: TurnUsage) -> Decimal | None:
        return cost(section.prices, usage)

    return lambda _: DriverChoice(
        name="model",
        drive=make(),
        model=section.name,
        price=price,
        explores=True,
        patience=MAX_STALE * section.workers,  # each has as many turns without news as one alone
    )
