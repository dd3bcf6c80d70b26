"""Whether a posted item's evidence shows a defect's effect: patterns over calls and answers. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from fleet.config.section import REGEX, Section

Pattern = Annotated[str, REGEX]


class ShownCall(Section):
    """One call of the evidence. Each given condition must hold; texts are searched, lists as JSON."""

    tool: str
    """Name of the tool."""
    asks: dict[str, Pattern] = {}
    """Patterns of arguments."""
    shows: dict[str, Pattern] = {}
    """Patterns of the result's fields; a missing field is an empty text."""
    lacks: dict[str, Pattern] = {}
    """Patterns that fields of the result must not match."""
    least: dict[str, float] = {}
    """Least values of numbers in the result."""
    exceeds: dict[str, tuple[str, float]] = {}
    """Numbers that are more than another field of the result times a factor; both are above 0."""
    unlike: dict[str, str] = {}
    """Fields with a value that is not that of another field of the result."""
    echoes: dict[str, str] = {}
    """Fields that equal an argument; the argument is not empty."""

    def holds(self, step: Mapping[str, Any]) -> bool:
        """Whether this step of an evidence bundle is such a call."""
        args, result = step.get("args", {}), step.get("result", {})
        return (
            step.get("tool") == self.tool
            and all(re.search(one, _text(args.get(key))) for key, one in self.asks.items())
            and all(re.search(one, _text(result.get(key))) for key, one in self.shows.items())
            and not any(re.search(one, _text(result.get(key))) for key, one in self.lacks.items())
            and all(_number(result.get(key)) >= one for key, one in self.least.items())
            and all(_exceeds(result, key, *other) for key, other in self.exceeds.items())
            and all(
                result.get(key) and result[key] != result.get(other) for key, other in self.unlike.items()
            )
            and all(args.get(one) and result.get(key) == args[one] for key, one in self.echoes.items())
        )


class ShownEffect(Section):
    """Calls whose answers together show a defect; they stand in the evidence in this order."""

    calls: tuple[ShownCall, ...] = Field(min_length=1)

    def shown_by(self, steps: Sequence[Mapping[str, Any]]) -> bool:
        """Whether these steps contain the calls in order."""
        waiting = list(self.calls)
        for step in steps:
            if waiting and waiting[0].holds(step):
                waiting.pop(0)
        return not waiting


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: object) -> float:
    """A number or a decimal string; what is neither is less than everything."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("-inf")


def _exceeds(result: Mapping[str, Any], key: str, other: str, factor: float) -> bool:
    return _number(result.get(key)) > factor * _number(result.get(other)) > 0
