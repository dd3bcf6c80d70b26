"""Expectations in CEL: what must hold on a healthy platform. Nothing is ever evaluated as Python.

The library and its grammar (0.4 s, 11 MB) are loaded by the first expectation, off the path of who has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

VARIABLES = ("result", "results", "history")
"""The last step's result, every step's result in order, and figures of earlier runs by metric."""


class ExpectationError(Exception):
    """The expectation does not compile, or cannot be decided on these results."""


@lru_cache(maxsize=1)
def _environment() -> Any:
    import celpy

    return celpy.Environment()


@lru_cache(maxsize=512)
def _program(text: str) -> Any:
    from celpy.celparser import CELParseError

    try:
        environment = _environment()
        return environment.program(environment.compile(text))
    except CELParseError as error:
        lines = str(error).strip().splitlines() or ["syntax"]
        raise ExpectationError(" ".join(lines)) from None


def check(text: str) -> str | None:
    """Why this expectation does not compile, or None."""
    try:
        _program(text)
    except ExpectationError as error:
        return f"not a CEL expression: {error}"
    return None


def holds(text: str, results: Sequence[Mapping[str, Any]], history: Mapping[str, float]) -> bool:
    """Whether the expectation holds; ExpectationError when it cannot be decided, which is never a finding."""
    from celpy.celtypes import BoolType

    answer = _evaluate(text, results, history)
    if not isinstance(answer, BoolType):
        raise ExpectationError("does not say true or false")
    return bool(answer)


def number(text: str, results: Sequence[Mapping[str, Any]]) -> float:
    """A figure worth keeping, such as `result.p95_ms`; ExpectationError when it is not a number."""
    from celpy.celtypes import DoubleType, IntType

    answer = _evaluate(text, results, {})
    if not isinstance(answer, DoubleType | IntType):
        raise ExpectationError("is not a number")
    return float(answer)


def _evaluate(text: str, results: Sequence[Mapping[str, Any]], history: Mapping[str, float]) -> Any:
    from celpy.adapter import json_to_cel
    from celpy.evaluation import CELEvalError

    values = {"result": results[-1], "results": list(results), "history": dict(history)}
    try:
        return _program(text).evaluate(json_to_cel(values))
    except (CELEvalError, ValueError, OverflowError, RecursionError) as error:
        # not only its own errors: an integer of 65 bits in a result is a plain ValueError
        raise ExpectationError(f"cannot be decided: {error.args[0] if error.args else error}") from None
