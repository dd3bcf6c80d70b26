"""What tokens cost, in exact decimals. Pure; an unknown number makes the cost unknown."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal

from fleet.config import PricesSection
from fleet.events.model import TurnUsage

MILLION = Decimal(1_000_000)
MICRO = Decimal("0.000001")


def cost(prices: PricesSection | None, usage: TurnUsage) -> Decimal | None:
    """Dollars, rounded up to the micro-dollar; None without prices or without both numbers of tokens."""
    if prices is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    cheap = prices.input if prices.cached is None else prices.cached
    total = (
        prices.input * (usage.input_tokens - cached) + cheap * cached + prices.output * usage.output_tokens
    )
    return (total / MILLION).quantize(MICRO, rounding=ROUND_UP)
