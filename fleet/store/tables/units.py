"""What the ledger counts, and in which scopes: units, scopes, and money in whole micro-dollars."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal

Scope = Literal["run", "persona", "fleet"]
"""One run · all runs of one persona on one day · all runs on one day. Days are in UTC."""
SCOPES: tuple[Scope, ...] = ("run", "persona", "fleet")

FLEET = ""
"""Owner of the whole fleet's day."""

Limits = Mapping[Scope, Mapping[str, int]]
"""Scope -> unit -> the most that may be spent there. A run may spend only listed units; a day
does not limit an unlisted unit."""

USD = "usd_micro"
"""The unit of money: millionths of a US dollar, always whole."""
MICROS = 1_000_000
INT_MAX = 2**63 - 1
"""The largest integer in a column."""

_EXACT = Context(prec=60, rounding=ROUND_CEILING)


def micros(usd: Decimal) -> int:
    """Dollars as whole micro-dollars, rounded up: a price is never counted lower than it is.

    ValueError for an invalid amount (negative, NaN, infinite), TypeError for a float: it is inexact.
    """
    if not isinstance(usd, Decimal):
        raise TypeError(f"money is a Decimal, not a {type(usd).__name__}")
    if not usd.is_finite() or usd < 0:
        raise ValueError(f"not an amount of money: {usd}")
    if usd > INT_MAX // MICROS:
        return INT_MAX
    return int((_EXACT.multiply(usd, MICROS)).to_integral_value(rounding=ROUND_CEILING))


def dollars(count: int) -> Decimal:
    """Micro-dollars as dollars, exactly."""
    return _EXACT.divide(Decimal(count), MICROS)


def number(unit: str, count: int) -> str:
    """For a person: a count, money in dollars."""
    return f"{dollars(count):f}" if unit == USD else str(count)


def word(unit: str) -> str:
    """A unit's name in configuration."""
    return "usd" if unit == USD else unit


def amount(unit: str, count: int) -> str:
    """For a person: `3 writes`, `1 call`, `0.12 usd`."""
    name = word(unit)
    return f"{number(unit, count)} {name.removesuffix('s') if count == 1 else name}"


def limited(scope: Scope, unit: str, limit: int, owner: str = "") -> str:
    """For a person: `the budget of 3 writes`, `… a day of qa-smoke`, `… a day of the fleet`."""
    of = {"run": "", "persona": f" a day of {owner or 'this persona'}", "fleet": " a day of the fleet"}[scope]
    return f"the budget of {amount(unit, limit)}{of}"


_LIMITED = re.compile(r"the budget of [\d.]+ (\w+)( a day of the fleet| a day of )?")


def key_named(reason: str) -> str:
    """The key that sets the limit which a text of `limited` names; "" without one."""
    if not (found := _LIMITED.search(reason)):
        return ""
    unit = found[1] if found[1] in (USD, word(USD)) else f"{found[1].removesuffix('s')}s"
    day = (found[2] or "").strip()
    return key_of("fleet" if day.endswith("fleet") else "persona" if day else "run", unit)


def key_of(scope: Scope, unit: str) -> str:
    """The key that sets a limit: `budget.writes in the persona file`."""
    if unit == "requests":
        return "web.requests_per_day in the platform's profile"
    return {
        "run": f"budget.{word(unit)} in the persona file",
        "persona": f"budget.day.{word(unit)} in the persona file",
        "fleet": f"budget.{word(unit)} in fleet.toml",
    }[scope]
