"""Pure: the combined usage of several turns."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

from fleet.events.model import TurnUsage

_NUMBERS = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "duration_s",
    "model_calls",
    "tool_calls",
)


def total(usages: Iterable[TurnUsage | None]) -> TurnUsage | None:
    """The sum of those that reported; a figure that one of them lacks stays unknown.

    The model is the last one named. None when none reported. A cost that is not a decimal number is unknown.
    """
    told = [usage for usage in usages if usage is not None]
    if not told:
        return None
    sums: dict[str, Any] = {}
    for name in _NUMBERS:
        values = [getattr(usage, name) for usage in told]
        sums[name] = None if None in values else sum(values)
    costs = [_decimal(usage.cost_usd) for usage in told]
    cost = None if None in costs else f"{sum((one for one in costs if one is not None), Decimal(0)):f}"
    models = [usage.model for usage in told if usage.model]
    return TurnUsage(model=models[-1] if models else "", cost_usd=cost, **sums)


def _decimal(text: str | None) -> Decimal | None:
    try:
        value = Decimal(text) if text is not None else None
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() else None
