"""Usage of an answer in the fleet's terms, for every protocol."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse

from fleet.config import PricesSection
from fleet.drivers.model.prices import cost
from fleet.drivers.model.talk import calls
from fleet.events.model import TurnUsage

MAX_TOKENS = 1_000_000_000
"""Largest credible number of tokens; a larger or negative one is rejected."""


def usage(
    response: ModelResponse, prices: PricesSection | None, *, attempts: int, seconds: float
) -> TurnUsage:
    """Usage as reported; 0 where something was used means that it was not reported."""
    used = response.usage
    details = used.details  # each protocol has its own name; all three count reasoning within the output
    reasoning = (
        details.get("reasoning_tokens") or details.get("thoughts_tokens") or used.output_reasoning_tokens
    )
    unknown = bool(used.unmeasured_requests) or not used.has_values()
    found = TurnUsage(
        model=response.model_name or "",
        input_tokens=None if unknown else _count(used.input_tokens) or None,
        output_tokens=None if unknown else _count(used.output_tokens) or (None if response.parts else 0),
        cached_tokens=_count(used.cache_read_tokens) or None,
        reasoning_tokens=_count(reasoning) or None,
        duration_s=round(seconds, 3),
        model_calls=attempts,
        tool_calls=len(calls(response)),
    )
    dollars = cost(prices, found)
    return found.model_copy(update={"cost_usd": None if dollars is None else str(dollars)})


def _count(number: object) -> int | None:
    return number if isinstance(number, int) and 0 <= number <= MAX_TOKENS else None
